//! The same over connections that are waited for: the ways through the code are the same, so a
//! look at each is enough.

use everbloom_client::{BitmapFilter, Error, SpreadFilter};
use everbloom_dev::PATIENCE;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client};

use crate::support::{Host, items, runtime, with_bitmaps, with_filters};

async fn connect(host: &Host) -> MultiplexedConnection {
    let client = Client::open(format!("redis://{}", host.addr)).unwrap();
    // By default it waits for half a second, which is not much on a busy machine.
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(PATIENCE));
    let connection = client.get_multiplexed_async_connection_with_config(&config);
    connection.await.unwrap()
}

#[test]
fn a_filter_in_bitmaps() {
    for host in with_bitmaps() {
        runtime().block_on(async {
            let mut connection = connect(&host).await;
            let missing = BitmapFilter::open_async(&mut connection, "seen").await;
            assert!(matches!(missing, Err(Error::NotFound { .. })));
            let seen = BitmapFilter::create_async(&mut connection, "seen", 10_000, 1e-9);
            let seen = seen.await.unwrap();
            assert!(seen.add_async(&mut connection, "a").await.unwrap());
            assert!(seen.contains_async(&mut connection, "a").await.unwrap());
            let all = items("item", 5000);
            // Tasks that share a connection agree on what is new.
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..3 {
                let (seen, all) = (seen.clone(), all.clone());
                let mut connection = connection.clone();
                tasks.spawn(async move {
                    let answers = seen.add_all_async(&mut connection, &all).await.unwrap();
                    answers.into_iter().filter(|new| *new).count()
                });
            }
            let new: usize = tasks.join_all().await.into_iter().sum();
            assert_eq!(new, all.len());
            let count = seen.count_async(&mut connection).await.unwrap();
            assert!(count.abs_diff(5001) < 50, "{count}");
            seen.clear_async(&mut connection).await.unwrap();
            assert!(!seen.contains_async(&mut connection, "a").await.unwrap());
            seen.delete_async(&mut connection).await.unwrap();
        });
    }
}

#[test]
fn a_spread_filter() {
    for host in with_filters() {
        runtime().block_on(async {
            let mut connection = connect(&host).await;
            let seen = SpreadFilter::create_async(&mut connection, "seen", 1000, 1e-9, 16);
            let seen = seen.await.unwrap();
            let all = items("item", 10_000);
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..3 {
                let (seen, all) = (seen.clone(), all.clone());
                let mut connection = connection.clone();
                tasks.spawn(async move {
                    let answers = seen.add_all_async(&mut connection, &all).await.unwrap();
                    answers.into_iter().filter(|new| *new).count()
                });
            }
            let new: usize = tasks.join_all().await.into_iter().sum();
            assert_eq!(new, all.len());
            let known = seen
                .contains_all_async(&mut connection, &all)
                .await
                .unwrap();
            assert!(known.iter().all(|known| *known));
            assert_eq!(seen.count_async(&mut connection).await.unwrap(), 10_000);
        });
    }
}
