//! Every error text of the commands, once.
//!
//! The texts are exactly RedisBloom's, including those without the `ERR` prefix, because clients
//! match on them. RedisBloom has no layouts and seeds; the texts about these follow its style.

use crate::filter::FilterKind;
use crate::limits::MAX_LOADED_LAYERS;
use everbloom::BuildError;
use everbloom_resp::Reply;
use std::borrow::Cow;
use thiserror::Error;

/// Why a command, or one item of a command, was refused. `Display` is the text that follows the
/// `-` on the wire.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum CommandError {
    /// Too few or too many arguments. Holds the lower-case command name.
    #[error("ERR wrong number of arguments for '{0}' command")]
    WrongArity(&'static str),
    /// The key holds a value of another type.
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    /// The key does not exist and the command does not create it.
    #[error("ERR not found")]
    NotFound,
    /// BF.RESERVE: the key already holds a filter.
    #[error("ERR item exists")]
    ItemExists,
    /// BF.RESERVE: the error rate is not a number.
    #[error("ERR bad error rate")]
    ErrorRateSyntax,
    /// BF.RESERVE: the error rate is not strictly between 0 and 1.
    #[error("ERR error rate must be in the range (0.000000, 1.000000)")]
    ErrorRateRange,
    /// BF.RESERVE: the capacity is not an integer.
    #[error("ERR bad capacity")]
    CapacitySyntax,
    /// BF.RESERVE: the capacity is outside [`number::CAPACITY`](crate::number::CAPACITY).
    #[error("ERR capacity must be in the range [1, 1073741824]")]
    CapacityRange,
    /// BF.RESERVE: the word EXPANSION without a number after it.
    #[error("ERR no expansion")]
    ExpansionMissing,
    /// BF.RESERVE: the expansion is not an integer.
    #[error("ERR bad expansion")]
    ExpansionSyntax,
    /// BF.RESERVE: the expansion is outside [`number::EXPANSION`](crate::number::EXPANSION).
    #[error("ERR expansion must be in the range [0, 32768]")]
    ExpansionRange,
    /// BF.RESERVE: an expansion is given for a filter that may not grow.
    #[error("Nonscaling filters cannot expand")]
    NonScalingExpansion,
    /// BF.RESERVE: the word LAYOUT without a layout after it.
    #[error("ERR no layout")]
    LayoutMissing,
    /// BF.RESERVE: no layout has this name.
    #[error("ERR bad layout")]
    BadLayout,
    /// BF.RESERVE: the word SEED without a number after it.
    #[error("ERR no seed")]
    SeedMissing,
    /// BF.RESERVE: the seed is not an integer.
    #[error("ERR bad seed")]
    SeedSyntax,
    /// BF.RESERVE: the seed does not fit into 64 bits.
    #[error("ERR seed must be in the range [0, 18446744073709551615]")]
    SeedRange,
    /// A seed is given for a filter of the classic layout, whose hash has no seed.
    #[error("ERR a seed needs LAYOUT BLOCKED")]
    SeedOfClassic,
    /// A filter of the blocked layout, where RedisBloom may have to follow.
    #[error("ERR blocked filters are refused while bf-redisbloom-compatible is on")]
    ClassicOnly,
    /// A cuckoo filter with a chosen error rate, where RedisBloom may have to follow.
    #[error(
        "ERR cuckoo filters with an error rate are refused while bf-redisbloom-compatible is on"
    )]
    RedisBloomCuckooOnly,
    /// A command that RedisBloom lacks, where one may have to follow.
    #[error("ERR '{0}' is refused while bf-redisbloom-compatible is on")]
    OursOnly(&'static str),
    /// The words behind WINDOW are not a window.
    #[error("ERR bad window: SECONDS t or ITEMS, then perhaps GENERATIONS from 1 to 64")]
    Window,
    /// A window is given for a filter of the classic layout.
    #[error("ERR a window needs LAYOUT BLOCKED")]
    WindowOfClassic,
    /// BF.ADVANCE: the filter has no window.
    #[error("ERR the filter has no window")]
    NoWindow,
    /// BF.MERGE: a clock that was wrong has moved a window.
    #[error("ERR a window lies ahead of the clock: BF.ADVANCE its key first")]
    WindowAhead,
    /// BF.ADVANCE: the count is not a positive integer.
    #[error("ERR bad count of generations")]
    AdvanceCount,
    /// BF.ADVANCE: there is no time behind AT, or another word in its place.
    #[error("ERR bad time: AT and Unix milliseconds")]
    AdvanceTime,
    /// BF.INSERT: no layout has this name.
    #[error("Bad layout")]
    InsertLayout,
    /// BF.INSERT: the seed is not an integer or does not fit into 64 bits.
    #[error("Bad seed")]
    InsertSeed,
    /// BF.INSERT: the capacity is not an integer or out of range.
    #[error("Bad capacity")]
    InsertCapacity,
    /// BF.INSERT: the error rate is not a number or out of range.
    #[error("Bad error rate")]
    InsertErrorRate,
    /// BF.INSERT: the expansion is not an integer or out of range.
    #[error("Bad expansion")]
    InsertExpansion,
    /// BF.INSERT: a word is not an option.
    #[error("Unknown argument received")]
    UnknownArgument,
    /// BF.INFO: a word is not the name of a field.
    #[error("Invalid information value")]
    InvalidInformation,
    /// No filter with these parameters is possible.
    #[error("ERR could not create filter")]
    CouldNotCreate,
    /// The filter would take more memory than is free or allowed.
    #[error("ERR Insufficient memory to create filter")]
    InsufficientMemory,
    /// The command would take more memory than is free.
    #[error("OOM command not allowed when used memory > 'maxmemory'.")]
    OutOfMemory,
    /// A filter that may not grow has reached its capacity.
    #[error("ERR non scaling filter is full")]
    Full,
    /// The filter is full and cannot get another layer.
    #[error("ERR problem inserting into filter")]
    CannotGrow,
    /// BF.SCANDUMP: the iterator is not an integer.
    #[error("Second argument must be numeric")]
    ScanIterator,
    /// BF.SCANDUMP: a window has dropped what the iterator stands for.
    #[error("ERR a generation of the window ended during this dump: begin again with iterator 0")]
    DumpOutdated,
    /// BF.LOADCHUNK: the iterator is not an integer.
    #[error("ERR Second argument must be numeric")]
    LoadIterator,
    /// BF.LOADCHUNK: the header describes no filter, or the iterator fits no chunk.
    #[error("ERR received bad data")]
    BadData,
    /// BF.LOADCHUNK: the header describes a filter that is larger than what is free or allowed.
    #[error("ERR received bad data")]
    TooLarge,
    /// BF.LOADCHUNK, BF.LOAD, RESTORE: the filter has more layers than a client may load.
    #[error("ERR a filter of more than {MAX_LOADED_LAYERS} layers is not loaded")]
    TooManyLayers,
    /// BF.MERGE: the filter would have more layers than a client may load.
    #[error("ERR the merged filter would have more than {MAX_LOADED_LAYERS} layers")]
    TooManyMergedLayers,
    /// BF.LOADCHUNK: the chunk starts outside the bit arrays.
    #[error("ERR invalid offset - no link found")]
    ChunkOffset,
    /// BF.LOADCHUNK: the chunk runs past the end of its layer.
    #[error("ERR invalid chunk - Too big for current filter")]
    ChunkTooBig,
    /// BF.LOAD: the key holds something.
    #[error("BUSYKEY Target key name already exists.")]
    BusyKey,
    /// BF.LOAD: the data is no filter, or there is no memory for it.
    #[error("ERR bloom object decoding failed")]
    BadObject,
    /// BF.INSERT: the tightening ratio is no number, or not between 0 and 1.
    #[error("ERR bad tightening ratio")]
    Tightening,
    /// BF.INSERT: the filter cannot grow as far as VALIDATESCALETO says.
    #[error("ERR provided VALIDATESCALETO causes false positive to degrade to 0")]
    ScaleTo,
    /// BF.INSERT: a filter that has grown as far as VALIDATESCALETO says would be too large.
    #[error("ERR provided VALIDATESCALETO causes bloom object to exceed memory limit")]
    ScaleToMemory,
    /// BF.INSERT: options of valkey-bloom, whose filters are classic, with the blocked layout.
    #[error("ERR TIGHTENING, VALIDATESCALETO and a seed of 32 bytes need LAYOUT CLASSIC")]
    ValkeyOfBlocked,
    /// BF.INSERT: VALIDATESCALETO for a filter that does not grow.
    #[error("ERR cannot use NONSCALING and VALIDATESCALETO options together")]
    ScaleToFixed,
    /// CF.RESERVE: MAXITERATIONS is not an integer.
    #[error("Couldn't parse MAXITERATIONS")]
    IterationsSyntax,
    /// CF.RESERVE: MAXITERATIONS is outside its range.
    #[error("MAXITERATIONS: value must be in the range [1, 65535]")]
    IterationsRange,
    /// CF.RESERVE: BUCKETSIZE is not an integer.
    #[error("Couldn't parse BUCKETSIZE")]
    BucketSizeSyntax,
    /// CF.RESERVE: BUCKETSIZE is outside its range.
    #[error("BUCKETSIZE: value must be in the range [1, 255]")]
    BucketSizeRange,
    /// CF.RESERVE: EXPANSION is not an integer.
    #[error("Couldn't parse EXPANSION")]
    CuckooExpansionSyntax,
    /// CF.RESERVE: EXPANSION is outside its range.
    #[error("EXPANSION: value must be in the range [0, 32768]")]
    CuckooExpansionRange,
    /// CF.RESERVE: the capacity is outside its range.
    #[error("Capacity must be in the range [2 * BUCKETSIZE, 1073741824]")]
    CuckooCapacityRange,
    /// CF.RESERVE: ERROR is not a number.
    #[error("Couldn't parse ERROR")]
    CuckooErrorRateSyntax,
    /// CF.RESERVE: ERROR is outside its range.
    #[error("ERROR: value must be in the range [1e-9, 0.5]")]
    CuckooErrorRateRange,
    /// CF.RESERVE: beside ERROR there is another word, or one of these twice.
    #[error("ERROR goes together with SEED and EXPANSION only, each once")]
    CuckooErrorRateOptions,
    /// CF.INSERT: the capacity is outside its range.
    #[error("Capacity must be in the range [cf-bucket-size * 2, 1073741824]")]
    CuckooInsertCapacityRange,
    /// CF.ADD: a filter that may not grow has no room for the item.
    #[error("Filter is full")]
    CuckooFull,
    /// CF.ADD: a filter with an error rate does not grow for one more copy of the item.
    #[error("ERR A table that is nearly empty has no room for one more copy of the item")]
    CuckooCopies,
    /// CF.ADD: a further table of a filter with an error rate would need longer fingerprints than
    /// there are.
    #[error("ERR The filter has as many tables as its error rate allows")]
    CuckooWidths,
    /// CF.ADD: there is no memory for another table.
    #[error("ERR Insufficient memory")]
    CuckooCannotGrow,
    /// A command that adds: the filter has as many tables as it may have. CF.LOADCHUNK, RESTORE: it
    /// has more than a client may load.
    #[error("Maximum expansions reached")]
    MaxExpansions,
    /// CF.DEL: no such filter.
    #[error("Not found")]
    CuckooNotFound,
    /// CF.COMPACT: no such filter.
    #[error("Cuckoo filter was not found")]
    CompactNotFound,
    /// CF.SCANDUMP, CF.LOADCHUNK: the position is not an integer, or one that is never given.
    #[error("Invalid position")]
    InvalidPosition,
    /// CF.LOADCHUNK: the header does not have the length of one.
    #[error("Invalid header")]
    InvalidHeader,
    /// CF.LOADCHUNK: the header describes no filter.
    #[error("Couldn't create filter!")]
    CuckooHeader,
    /// CF.LOADCHUNK: the header describes a filter that is larger than what is free or allowed.
    #[error("Couldn't create filter!")]
    CuckooTooLarge,
    /// CF.LOADCHUNK: the chunk does not lie within one table.
    #[error("Couldn't load chunk!")]
    CuckooChunk,
}

impl CommandError {
    /// The refusal of a filter that RedisBloom lacks, where one may have to follow.
    pub fn redisbloom_lacks(kind: FilterKind) -> CommandError {
        match kind {
            FilterKind::Cuckoo | FilterKind::KeyedCuckoo => CommandError::RedisBloomCuckooOnly,
            FilterKind::Bloom(_) | FilterKind::Valkey => CommandError::ClassicOnly,
        }
    }
}

impl From<CommandError> for Reply {
    fn from(error: CommandError) -> Self {
        Reply::Error(Cow::Owned(error.to_string()))
    }
}

impl From<BuildError> for CommandError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::TooLarge { .. } | BuildError::OutOfMemory { .. } => {
                Self::InsufficientMemory
            }
            _ => Self::CouldNotCreate,
        }
    }
}

impl From<everbloom::InsertError> for CommandError {
    fn from(error: everbloom::InsertError) -> Self {
        match error {
            everbloom::InsertError::Full => Self::Full,
            _ => Self::CannotGrow,
        }
    }
}
