//! The window of a value in the blocked layout.

use everbloom::redisbloom::PartsError;
use everbloom::{Generation, MAX_GENERATIONS, Span, Window};

use super::fields::{FieldReader, FieldWriter, ValueError, narrow};

pub(super) fn save<W: FieldWriter>(window: &Window, writer: &mut W) -> Result<(), W::Error> {
    writer.unsigned(window.span.ticks().unwrap_or(0))?;
    writer.unsigned(window.generations.into())?;
    writer.unsigned(window.capacity)?;
    writer.double(window.error_rate)?;
    writer.unsigned(window.dropped)?;
    writer.unsigned(window.kept.len() as u64)?;
    for generation in &window.kept {
        writer.unsigned(generation.layers.into())?;
        writer.unsigned(generation.began)?;
    }
    Ok(())
}

/// Reads the fields; whether they are a window is for the check of the parts to say.
pub(super) fn load<R: FieldReader>(reader: &mut R) -> Result<Window, ValueError<R::Error>> {
    let ticks = reader.unsigned().map_err(ValueError::Read)?;
    let generations = narrow(reader, "generations")?;
    let capacity = reader.unsigned().map_err(ValueError::Read)?;
    let error_rate = reader.double().map_err(ValueError::Read)?;
    let dropped = reader.unsigned().map_err(ValueError::Read)?;
    let count = reader.unsigned().map_err(ValueError::Read)?;
    if count > u64::from(MAX_GENERATIONS) + 1 {
        return Err(PartsError::Window.into());
    }
    let mut kept = Vec::new();
    for _ in 0..count {
        let layers = narrow(reader, "layers of a generation")?;
        let began = reader.unsigned().map_err(ValueError::Read)?;
        kept.push(Generation { layers, began });
    }
    Ok(Window {
        span: Span::of_ticks(ticks),
        generations,
        capacity,
        error_rate,
        dropped,
        kept,
    })
}
