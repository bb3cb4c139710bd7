//! Clients of a cluster whose calls end.

use std::time::Duration;

use redis::IntoConnectionInfo;
use redis::cluster::ClusterClientBuilder;

/// How often a client sends a request again.
const RETRIES: u32 = 5;
/// Milliseconds that it waits before it does.
const SHORTEST_WAIT: u64 = 50;
const LONGEST_WAIT: u64 = 500;
/// How long it waits for a connection and for an answer.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(1);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3);

/// A client for these nodes of a cluster, and all that they know of.
///
/// The crate `redis` sends a request up to 16 times again, and its blocking client sleeps up to 655
/// seconds before each, so a call in the middle of a failover may never seem to return. This client
/// sends it 5 times again and waits at most half a second before each, a second for a connection
/// and 3 seconds for an answer. What has failed [temporarily](crate::Error::is_temporary) can be
/// called again until the failover is over.
///
/// A request ends within 27 seconds on a blocking connection, also when a node hangs, and mostly
/// within 3. A call that sends several requests one after the other, as one for many shards does,
/// takes that long for each request to the hanging node. On an async connection a request ends
/// within 3 seconds, with all its retries: this is the crate's `overall_response_timeout`.
///
/// ```no_run
/// use everbloom_client::{SpreadFilter, cluster_client};
///
/// let client = cluster_client(["redis://127.0.0.1:7021", "redis://127.0.0.1:7022"]).build()?;
/// let mut connection = client.get_connection()?;
/// let seen = SpreadFilter::open(&mut connection, "seen")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn cluster_client<N: IntoConnectionInfo>(
    nodes: impl IntoIterator<Item = N>,
) -> ClusterClientBuilder {
    ClusterClientBuilder::new(nodes)
        .retries(RETRIES)
        .min_retry_wait(SHORTEST_WAIT)
        .max_retry_wait(LONGEST_WAIT)
        .connection_timeout(CONNECTION_TIMEOUT)
        .response_timeout(RESPONSE_TIMEOUT)
}
