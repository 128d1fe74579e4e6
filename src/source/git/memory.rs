//! Memory of git's library. It takes as much as a server's answer says (a pack of 12 bytes can claim 32 GiB), and goes on for
//! ever over some packs without asking anybody. So it gets its memory from here: no more than is lent to a thread, and none
//! any more once nobody waits for that thread. What gets none gives up.

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use libgit2_sys as raw;
use nix::libc;

/// Bytes for one exchange with a server, or for writing one tree: several times what the largest repositories take.
const MOST: isize = 4 << 30;

struct Loan {
    /// Whether nobody waits any more; none outside of [`lend`].
    is_over: RefCell<Option<Arc<AtomicBool>>>,
    used: Cell<isize>,
    most: Cell<isize>,
    was_refused: Cell<bool>,
}

thread_local! {
    static LOAN: Loan = const {
        Loan {
            is_over: RefCell::new(None),
            used: Cell::new(0),
            most: Cell::new(MOST),
            was_refused: Cell::new(false),
        }
    };
}

/// Does something with git's library; gives whether it got too little memory for that.
pub(super) fn lend<T>(is_over: Arc<AtomicBool>, work: impl FnOnce() -> T) -> (T, bool) {
    lend_at_most(MOST, is_over, work)
}

fn lend_at_most<T>(most: isize, is_over: Arc<AtomicBool>, work: impl FnOnce() -> T) -> (T, bool) {
    LOAN.with(|loan| {
        loan.is_over.replace(Some(is_over));
        loan.used.set(0);
        loan.most.set(most);
        loan.was_refused.set(false);
    });
    let done = work();
    let was_refused = LOAN.with(|loan| {
        loan.is_over.replace(None);
        loan.was_refused.get()
    });
    (done, was_refused)
}

/// Has git's library get its memory from here.
pub(super) fn set_up() {
    #[repr(C)]
    struct Allocator {
        take: unsafe extern "C" fn(usize, *const c_char, c_int) -> *mut c_void,
        change: unsafe extern "C" fn(*mut c_void, usize, *const c_char, c_int) -> *mut c_void,
        give_back: unsafe extern "C" fn(*mut c_void),
    }
    let allocator = Allocator { take, change, give_back };
    // SAFETY: the library has been set up, copies the three functions, and has had its memory from `malloc`, to which they
    // give it back.
    unsafe {
        raw::git_libgit2_opts(raw::GIT_OPT_SET_ALLOCATOR.cast_signed(), &raw const allocator);
    }
}

/// Whether there is so much more for this thread.
fn may_take(bytes: usize) -> bool {
    let allowed = LOAN.try_with(|loan| {
        let Ok(is_over) = loan.is_over.try_borrow() else { return true };
        let Some(is_over) = &*is_over else { return true };
        let more = isize::try_from(bytes).unwrap_or(isize::MAX);
        let fits = loan.used.get().saturating_add(more) <= loan.most.get();
        if !fits {
            loan.was_refused.set(true);
        }
        fits && !is_over.load(Ordering::Relaxed)
    });
    // A thread that ends is not one of those that are watched.
    allowed.unwrap_or(true)
}

fn count(place: *mut c_void, sign: isize) {
    if place.is_null() {
        return;
    }
    // SAFETY: the place is one that `malloc` gave.
    let bytes = unsafe { libc::malloc_usable_size(place) };
    let bytes = isize::try_from(bytes).unwrap_or_default();
    let _ = LOAN.try_with(|loan| loan.used.set(loan.used.get().saturating_add(sign * bytes)));
}

unsafe extern "C" fn take(bytes: usize, _: *const c_char, _: c_int) -> *mut c_void {
    if !may_take(bytes) {
        return ptr::null_mut();
    }
    // SAFETY: any number of bytes can be asked for.
    let place = unsafe { libc::malloc(bytes) };
    count(place, 1);
    place
}

unsafe extern "C" fn change(old: *mut c_void, bytes: usize, _: *const c_char, _: c_int) -> *mut c_void {
    if !may_take(bytes) {
        return ptr::null_mut();
    }
    count(old, -1);
    // SAFETY: the library gives a place that it has from here, or none.
    let place = unsafe { libc::realloc(old, bytes) };
    count(if place.is_null() { old } else { place }, 1);
    place
}

unsafe extern "C" fn give_back(place: *mut c_void) {
    count(place, -1);
    // SAFETY: the library gives a place that it has from here, or none.
    unsafe { libc::free(place) };
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use git2::{Error, ObjectType, Oid, Repository};
    use sha1::{Digest, Sha1};

    use super::super::super::watch::{Patience, wait};
    use super::*;

    fn pack(count: u32, objects: &[u8]) -> Vec<u8> {
        let mut pack = [b"PACK\0\0\0\x02".as_slice(), &count.to_be_bytes(), objects].concat();
        let sum = Sha1::digest(&pack);
        pack.extend(&sum[..]);
        pack
    }

    fn object(kind: u8, base: &[u8], content: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        let size = u8::try_from(content.len()).unwrap();
        let head =
            if size < 16 { vec![kind << 4 | size] } else { vec![kind << 4 | size & 15 | 0x80, size >> 4] };
        [&head, base, &encoder.finish().unwrap()].concat()
    }

    fn received(folder: &std::path::Path, pack: &[u8]) -> Result<(), Error> {
        super::super::prepare();
        let repository = Repository::init_bare(folder)?;
        let objects = repository.odb()?;
        let mut writer = objects.packwriter()?;
        writer.write_all(pack).map_err(|error| Error::from_str(&error.to_string()))?;
        writer.commit().map(drop)
    }

    #[test]
    fn a_pack_gets_no_more_memory_than_is_lent() {
        let folder = tempfile::tempdir().unwrap();
        let good = pack(1, &object(3, b"", b"a blob"));
        let (done, was_refused) = lend(Arc::default(), || received(&folder.path().join("good"), &good));
        assert!(done.is_ok() && !was_refused, "{done:?}");
        let claims = pack(u32::MAX - 1, &object(3, b"", b"a blob"));
        let (done, was_refused) = lend(Arc::default(), || received(&folder.path().join("claims"), &claims));
        assert!(done.is_err() && was_refused);
        let (done, was_refused) =
            lend_at_most(1 << 12, Arc::default(), || received(&folder.path().join("little"), &good));
        assert!(done.is_err() && was_refused);
        assert!(received(&folder.path().join("again"), &good).is_ok(), "as before");
    }

    #[test]
    fn a_pack_that_is_gone_through_for_ever_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let base = b"a blob that is long enough to be copied from";
        let id = Oid::hash_object(ObjectType::Blob, base).unwrap();
        // The delta makes what is there already; the library tries again and again.
        let delta = [u8::try_from(base.len()).unwrap(), 6, 0x90, 6];
        let twice = [object(3, b"", base), object(3, b"", &base[..6]), object(7, id.as_bytes(), &delta)];
        let pack = pack(3, &twice.concat());
        let patience = Patience { total: Duration::from_secs(2), silence: Duration::from_secs(2) };
        let (ended, end) = channel();
        let place = folder.path().join("twice");
        let result = wait(patience, &|_| {}, move |watch| {
            let (done, _) = lend(watch.over(), || received(&place, &pack).map_err(|error| error.to_string()));
            let _ = ended.send(done.clone());
            done
        });
        let is_given_up = match result {
            Ok(done) => done.is_err(),
            Err(error) => error.to_string().contains("takes too long"),
        };
        assert!(is_given_up);
        assert!(end.recv_timeout(Duration::from_secs(30)).expect("the thread ends").is_err());
    }
}
