//! A long list in little memory: its items are written down as JSON in blocks that are compressed. Pure.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Items of a block: many enough to compress well, few enough to be looked at for the sake of one.
const BLOCK: usize = 64;
/// The fastest that zstd has: items of a list are much alike.
const LEVEL: i32 = 1;

/// Items in the order in which they came.
#[derive(Debug, Clone)]
pub struct Packed<T> {
    blocks: Vec<Box<[u8]>>,
    items: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> Packed<T> {
    /// Packs all items.
    ///
    /// # Errors
    /// The first error of an item; one that cannot be written as JSON, which is a bug.
    pub fn of(items: impl IntoIterator<Item = Result<T>>) -> Result<Self> {
        let mut blocks = Vec::new();
        let mut items = items.into_iter();
        loop {
            let block = items.by_ref().take(BLOCK).collect::<Result<Vec<T>>>()?;
            if block.is_empty() {
                return Ok(Packed { blocks, items: PhantomData });
            }
            let packed =
                pack(&block).map_err(|error| Error::internal("cannot pack a list").with_source(error))?;
            blocks.push(packed);
        }
    }

    /// All items; those of one block are in memory at once.
    ///
    /// # Errors
    /// Where an item does not read as it was written, which is a bug.
    pub fn iter(&self) -> impl Iterator<Item = Result<T>> {
        (0..self.blocks.len()).flat_map(|number| {
            let (block, error) = match self.block(number) {
                Ok(block) => (block, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            block.into_iter().map(Ok).chain(error)
        })
    }

    fn block(&self, number: usize) -> Result<Vec<T>> {
        unpack(&self.blocks[number])
            .map_err(|error| Error::internal("what was packed does not come back").with_source(error))
    }
}

fn pack<T: Serialize>(block: &[T]) -> std::io::Result<Box<[u8]>> {
    let mut compressed = zstd::Encoder::new(Vec::new(), LEVEL)?;
    serde_json::to_writer(&mut compressed, block)?;
    Ok(compressed.finish()?.into())
}

fn unpack<T: DeserializeOwned>(block: &[u8]) -> std::io::Result<Vec<T>> {
    Ok(serde_json::from_slice(&zstd::decode_all(block)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed<T: Serialize + DeserializeOwned>(items: Vec<T>) -> Result<Packed<T>> {
        Packed::of(items.into_iter().map(Ok))
    }

    #[test]
    fn items_come_back_in_order() {
        for length in [0, 1, BLOCK - 1, BLOCK, 3 * BLOCK + 2] {
            let items: Vec<String> = (0..length).map(|number| format!("item {number}")).collect();
            let packed = packed(items.clone()).unwrap();
            assert_eq!(packed.iter().collect::<Result<Vec<String>>>().unwrap(), items);
        }
    }

    #[test]
    fn what_is_alike_takes_little_memory() {
        let packed = packed(vec!["the same words again and again".to_owned(); 1_000]).unwrap();
        assert!(packed.blocks.iter().map(|block| block.len()).sum::<usize>() < 3_000);
    }

    #[test]
    fn the_first_error_of_an_item_and_what_does_not_read_back_are_errors() {
        let broken = [Ok(1), Err(Error::usage("no second")), Ok(3)];
        assert_eq!(Packed::<u8>::of(broken).unwrap_err().to_string(), "no second");
        let not_a_number = packed(vec![1.0, f64::NAN]).unwrap();
        assert!(not_a_number.iter().any(|item| item.is_err()));
    }
}
