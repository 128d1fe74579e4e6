//! A long list in little memory: its items are written down as JSON in blocks that are compressed. Pure.

use std::io;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Items of a block: many enough to compress well, few enough to be looked at for the sake of one.
const BLOCK: usize = 64;
/// The fastest that zstd has: items of a list are much alike.
const LEVEL: i32 = 1;

/// Items in the order in which they came.
#[derive(Debug, Clone)]
pub struct Packed<T> {
    blocks: Vec<Box<[u8]>>,
    length: usize,
    items: PhantomData<fn() -> T>,
}

impl<T> Default for Packed<T> {
    fn default() -> Self {
        Packed { blocks: Vec::new(), length: 0, items: PhantomData }
    }
}

impl<T: Serialize + DeserializeOwned> Packed<T> {
    /// Packs all items.
    ///
    /// # Errors
    /// The first error of an item; one that cannot be written as JSON.
    pub fn of<E: From<io::Error>>(items: impl IntoIterator<Item = Result<T, E>>) -> Result<Self, E> {
        let mut packed = Packed::default();
        let mut items = items.into_iter();
        loop {
            let block = items.by_ref().take(BLOCK).collect::<Result<Vec<T>, E>>()?;
            if block.is_empty() {
                return Ok(packed);
            }
            packed.push(&block)?;
        }
    }

    fn push(&mut self, block: &[T]) -> io::Result<()> {
        let mut compressed = zstd::Encoder::new(Vec::new(), LEVEL)?;
        serde_json::to_writer(&mut compressed, block)?;
        self.blocks.push(compressed.finish()?.into());
        self.length += block.len();
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// All items; those of one block are in memory at once.
    ///
    /// # Errors
    /// Where an item does not read as it was written, which is a bug.
    pub fn iter(&self) -> impl Iterator<Item = io::Result<T>> {
        (0..self.blocks.len()).flat_map(|number| {
            let (block, error) = match self.block(number) {
                Ok(block) => (block, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            block.into_iter().map(Ok).chain(error)
        })
    }

    /// The block that an item is in, and its place there.
    pub fn place(at: usize) -> (usize, usize) {
        (at / BLOCK, at % BLOCK)
    }

    /// The items of a block, by its number.
    ///
    /// # Errors
    /// As for [`Packed::iter`].
    pub fn block(&self, number: usize) -> io::Result<Vec<T>> {
        let bytes = zstd::decode_all(&*self.blocks[number])?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed<T: Serialize + DeserializeOwned>(items: Vec<T>) -> io::Result<Packed<T>> {
        Packed::of(items.into_iter().map(io::Result::Ok))
    }

    #[test]
    fn items_come_back_in_order_alone_and_together() {
        for length in [0, 1, BLOCK - 1, BLOCK, 3 * BLOCK + 2] {
            let items: Vec<String> = (0..length).map(|number| format!("item {number}")).collect();
            let packed = packed(items.clone()).unwrap();
            assert_eq!((packed.len(), packed.is_empty()), (length, length == 0));
            assert_eq!(packed.iter().collect::<io::Result<Vec<String>>>().unwrap(), items);
            for (at, item) in items.iter().enumerate() {
                let (block, place) = Packed::<String>::place(at);
                assert_eq!(&packed.block(block).unwrap()[place], item);
            }
        }
    }

    #[test]
    fn what_is_alike_takes_little_memory() {
        let packed = packed(vec!["the same words again and again".to_owned(); 1_000]).unwrap();
        assert!(packed.blocks.iter().map(|block| block.len()).sum::<usize>() < 3_000);
    }

    #[test]
    fn the_first_error_of_an_item_and_what_does_not_read_back_are_errors() {
        let broken = [Ok(1), Err(io::Error::other("no second")), Ok(3)];
        assert_eq!(Packed::<u8>::of(broken).unwrap_err().to_string(), "no second");
        let not_a_number = packed(vec![1.0, f64::NAN]).unwrap();
        assert!(not_a_number.iter().any(|item| item.is_err()));
    }
}
