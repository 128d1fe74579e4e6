//! A library for `LD_PRELOAD` that shifts the wall clock of a process by a number of seconds, and nothing else.
//!
//! `GISTMILL_CLOCK_SHIFT=<seconds>` gives the shift, negative or not; without it, or with 0, every function here does
//! what the one that it stands for does. `GISTMILL_CLOCK_START=<seconds[.fraction]>` is the real time at which the run
//! began (default: the time at which this library was loaded).
//!
//! - Clocks: what tells real time is ahead by the shift; monotonic and CPU clocks are as they are.
//! - Deadlines: a point in time that can only come from the shifted clock is moved back before libc or the kernel sees
//!   it, so that waits take as long as ever. Which clock a deadline belongs to is told from its value: see [`on_kernel_clock`].
//! - File times: what the run wrote, between its start and now, is shown shifted, and set back when it is set. Older files
//!   keep their times.
//!
//! Built without the standard library and without a list of needed libraries, so that it loads into every glibc or musl
//! process. It has no locks and allocates nothing: it may be called from signal handlers and in forked children.

#![no_std]

use core::arch::asm;
use core::ffi::{c_char, c_int, c_uint, c_ulong, c_ushort, c_void};
use core::mem::transmute;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, Ordering};

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("the layouts here are those of 64-bit Linux");

const NANOS: i64 = 1_000_000_000;
/// How far beyond now a file time may lie and still count as the run's own.
const SLACK_NANOS: i64 = 2 * NANOS;

const EINVAL: c_int = 22;
const ENOSYS: c_int = 38;
const THRD_ERROR: c_int = 2;

const AT_FDCWD: c_int = -100;
const AT_SYMLINK_NOFOLLOW: c_int = 0x100;
const UTIME_NOW: i64 = 0x3fff_ffff;
const UTIME_OMIT: i64 = 0x3fff_fffe;

const CLOCK_REALTIME: c_int = 0;
const CLOCK_MONOTONIC: c_int = 1;
const CLOCK_REALTIME_COARSE: c_int = 5;
const CLOCK_REALTIME_ALARM: c_int = 8;
const CLOCK_TAI: c_int = 11;
/// `TIMER_ABSTIME` and `TFD_TIMER_ABSTIME`.
const ABSOLUTE: c_int = 1;

#[derive(Clone, Copy)]
#[repr(C)]
struct TimeSpec {
    seconds: i64,
    nanos: i64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct TimeVal {
    seconds: i64,
    micros: i64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct TimerSpec {
    interval: TimeSpec,
    value: TimeSpec,
}

/// `struct timeb` of ftime(3).
#[repr(C)]
struct TimeB {
    seconds: i64,
    millis: c_ushort,
    zone: i16,
    daylight: i16,
}

/// `struct utimbuf` of utime(2).
#[derive(Clone, Copy)]
#[repr(C)]
struct UtimBuf {
    accessed: i64,
    modified: i64,
}

/// `struct stat`: on both machines the times lie at the same place.
#[repr(C)]
struct Stat {
    head: [u64; 9],
    /// Accessed, modified, changed.
    times: [TimeSpec; 3],
}

#[derive(Clone, Copy)]
#[repr(C)]
struct StatxTime {
    seconds: i64,
    nanos: u32,
    reserved: i32,
}

/// `struct statx` up to its times.
#[repr(C)]
struct Statx {
    head: [u64; 8],
    /// Accessed, born, changed, modified.
    times: [StatxTime; 4],
}

// ---- the system ------------------------------------------------------------------------------------------------------

unsafe extern "C" {
    static environ: *const *const c_char;
    fn __errno_location() -> *mut c_int;
}

#[cfg(target_arch = "x86_64")]
mod number {
    pub const FSTAT: usize = 5;
    pub const GETTIMEOFDAY: usize = 96;
    pub const CLOCK_GETTIME: usize = 228;
    pub const CLOCK_NANOSLEEP: usize = 230;
    pub const NEWFSTATAT: usize = 262;
    pub const UTIMENSAT: usize = 280;
    pub const TIMERFD_SETTIME: usize = 286;
    pub const STATX: usize = 332;
    pub const EXIT_GROUP: usize = 231;
}

#[cfg(target_arch = "aarch64")]
mod number {
    pub const FSTAT: usize = 80;
    pub const GETTIMEOFDAY: usize = 169;
    pub const CLOCK_GETTIME: usize = 113;
    pub const CLOCK_NANOSLEEP: usize = 115;
    pub const NEWFSTATAT: usize = 79;
    pub const UTIMENSAT: usize = 88;
    pub const TIMERFD_SETTIME: usize = 86;
    pub const STATX: usize = 291;
    pub const EXIT_GROUP: usize = 94;
}

/// A system call; gives the kernel's answer, `-errno` for a failure.
#[cfg(target_arch = "x86_64")]
unsafe fn call(number: usize, a: usize, b: usize, c: usize, d: usize, e: usize) -> isize {
    let result: isize;
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d,
            in("r8") e, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

#[cfg(target_arch = "aarch64")]
unsafe fn call(number: usize, a: usize, b: usize, c: usize, d: usize, e: usize) -> isize {
    let result: isize;
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") a as isize => result, in("x1") b, in("x2") c, in("x3") d,
            in("x4") e, options(nostack));
    }
    result
}

/// The answer of a system call as libc gives it: -1 and `errno` for a failure.
fn outcome(result: isize) -> c_int {
    if result < 0 { failed(-result as c_int) } else { result as c_int }
}

fn failed(error: c_int) -> c_int {
    // SAFETY: libc gives every thread a place for its `errno`.
    unsafe { *__errno_location() = error };
    -1
}

/// The address of a function that the process may lack: a weak symbol.
macro_rules! weak {
    ($name:literal) => {{
        let address: *mut c_void;
        // SAFETY: reads an entry of this library's global offset table, which the loader has filled.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!(concat!(".weak ", $name), concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address, options(nostack, readonly, preserves_flags));
            #[cfg(target_arch = "aarch64")]
            asm!(concat!(".weak ", $name), concat!("adrp {0}, :got:", $name), concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"),
                out(reg) address, options(nostack, readonly, preserves_flags));
        }
        address
    }};
}

/// A function of libc that one here stands in front of.
struct Real {
    address: AtomicPtr<c_void>,
    /// With its 0.
    name: &'static str,
    /// The version that programs get, where an older one of the same name would be found first; or empty.
    version: &'static str,
}

impl Real {
    const fn new(name: &'static str, version: &'static str) -> Self {
        Real { address: AtomicPtr::new(null_mut()), name, version }
    }

    /// Its address, looked up when that was not done yet; null when the process does not have it (yet).
    fn get(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        let found = self.look_up();
        self.address.store(found, Ordering::Relaxed);
        found
    }

    fn look_up(&self) -> *mut c_void {
        type Plain = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
        type Versioned = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;
        let next = -1_isize as *mut c_void; // RTLD_NEXT
        let versioned = weak!("dlvsym");
        if !self.version.is_empty() && !versioned.is_null() {
            // SAFETY: this is `dlvsym`, and both texts end with a 0.
            let found = unsafe {
                transmute::<*mut c_void, Versioned>(versioned)(
                    next,
                    self.name.as_ptr().cast(),
                    self.version.as_ptr().cast(),
                )
            };
            if !found.is_null() {
                return found;
            }
        }
        let plain = weak!("dlsym");
        if plain.is_null() {
            return null_mut();
        }
        // SAFETY: this is `dlsym`, and the name ends with a 0.
        unsafe { transmute::<*mut c_void, Plain>(plain)(next, self.name.as_ptr().cast()) }
    }
}

/// Declares the functions to look up, and a list of all of them.
macro_rules! reals {
    ($($constant:ident = $name:literal $(at $version:literal)?;)*) => {
        $(static $constant: Real = Real::new(concat!($name, "\0"), concat!($($version, "\0")?));)*
        static ALL: &[&Real] = &[$(&$constant),*];
    };
}

reals! {
    GETTIME = "clock_gettime";
    TIMESPEC_GET = "timespec_get";
    NANOSLEEP = "clock_nanosleep";
    SEM_TIMEDWAIT = "sem_timedwait";
    SEM_CLOCKWAIT = "sem_clockwait";
    COND_TIMEDWAIT = "pthread_cond_timedwait" at "GLIBC_2.3.2";
    COND_CLOCKWAIT = "pthread_cond_clockwait";
    MUTEX_TIMEDLOCK = "pthread_mutex_timedlock";
    MUTEX_CLOCKLOCK = "pthread_mutex_clocklock";
    READ_TIMEDLOCK = "pthread_rwlock_timedrdlock";
    READ_CLOCKLOCK = "pthread_rwlock_clockrdlock";
    WRITE_TIMEDLOCK = "pthread_rwlock_timedwrlock";
    WRITE_CLOCKLOCK = "pthread_rwlock_clockwrlock";
    TIMEDJOIN = "pthread_timedjoin_np";
    CLOCKJOIN = "pthread_clockjoin_np";
    C11_COND = "cnd_timedwait";
    C11_MUTEX = "mtx_timedlock";
    MQ_SEND = "mq_timedsend";
    MQ_RECEIVE = "mq_timedreceive";
    TIMER = "timer_settime" at "GLIBC_2.3.3";
    UTIMENSAT = "utimensat";
    FUTIMENS = "futimens";
}

/// Calls a looked-up function with the signature of the arguments, or evaluates to the last expression without it.
macro_rules! forward {
    ($real:ident($($argument:expr => $kind:ty),*) -> $answer:ty, else $missing:expr) => {{
        let address = $real.get();
        if address.is_null() {
            $missing
        } else {
            // SAFETY: this is libc's function of that name, called with what the caller passed for it.
            unsafe { transmute::<*mut c_void, unsafe extern "C" fn($($kind),*) -> $answer>(address)($($argument),*) }
        }
    }};
}

// ---- what is set -----------------------------------------------------------------------------------------------------

static KNOWN: AtomicBool = AtomicBool::new(false);
/// Whether `GETTIME` was looked up; before that the kernel is asked, for a look-up may need a clock itself.
static LOADED: AtomicBool = AtomicBool::new(false);
/// Seconds.
static SHIFT: AtomicI64 = AtomicI64::new(0);
/// Nanoseconds since 1970, real time; 0 = not known.
static START: AtomicI64 = AtomicI64::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    shift();
    for real in ALL {
        real.get();
    }
    LOADED.store(true, Ordering::Release);
}

/// The shift in seconds, 0 for none.
fn shift() -> i64 {
    if !KNOWN.load(Ordering::Acquire) {
        read_environment();
    }
    SHIFT.load(Ordering::Relaxed)
}

/// Several threads may do this at once: all find the same, and the first start counts.
#[cold]
fn read_environment() {
    // SAFETY: libc has set it, or it is null so early in the life of a process that there is nothing to read.
    if unsafe { environ }.is_null() {
        return;
    }
    let shift = variable(b"GISTMILL_CLOCK_SHIFT=").map_or(0, |text| decimal(text, 0));
    let start = variable(b"GISTMILL_CLOCK_START=").map_or(0, |text| decimal(text, 9));
    // File times are taken from the coarse clock.
    let start = if start > 0 { start } else { in_nanos(kernel_clock(CLOCK_REALTIME_COARSE)) };
    let _ = START.compare_exchange(0, start, Ordering::Relaxed, Ordering::Relaxed);
    SHIFT.store(shift, Ordering::Relaxed);
    KNOWN.store(true, Ordering::Release);
}

/// The text of a variable, `name` with its `=`.
fn variable(name: &[u8]) -> Option<*const u8> {
    // SAFETY: `environ` is an array of texts that end with a 0, with a null after the last one; the comparison stops at
    // the 0 at the latest, because `name` holds none.
    unsafe {
        let mut entry = environ;
        while !(*entry).is_null() {
            let text = (*entry).cast::<u8>();
            if name.iter().enumerate().all(|(at, byte)| *text.add(at) == *byte) {
                return Some(text.add(name.len()));
            }
            entry = entry.add(1);
        }
    }
    None
}

/// A decimal number in units of 10^-`digits`, digits after those cut off; 0 for anything that is not a number.
fn decimal(text: *const u8, digits: u32) -> i64 {
    // SAFETY: the text ends with a 0, where the loop ends.
    let mut bytes = (0..).map(|at| unsafe { *text.add(at) }).peekable();
    let negative = bytes.next_if_eq(&b'-').is_some();
    let (mut value, mut fraction) = (0_i64, None::<u32>);
    for byte in bytes {
        match byte {
            b'0'..=b'9' if fraction.is_none_or(|used| used < digits) => {
                value = value.wrapping_mul(10).wrapping_add(i64::from(byte - b'0'));
                fraction = fraction.map(|used| used + 1);
            }
            b'0'..=b'9' => {}
            b'.' if fraction.is_none() => fraction = Some(0),
            0 => break,
            _ => return 0,
        }
    }
    for _ in fraction.unwrap_or(0)..digits {
        value = value.wrapping_mul(10);
    }
    if negative { -value } else { value }
}

// ---- clocks ----------------------------------------------------------------------------------------------------------

/// Reads a clock as it is. The answer is that of clock_gettime(2).
fn read_clock(clock: c_int, into: *mut TimeSpec) -> c_int {
    if LOADED.load(Ordering::Acquire) {
        forward!(GETTIME(clock => c_int, into => *mut TimeSpec) -> c_int, else ask_kernel(clock, into))
    } else {
        ask_kernel(clock, into)
    }
}

fn ask_kernel(clock: c_int, into: *mut TimeSpec) -> c_int {
    // SAFETY: the kernel checks the address.
    outcome(unsafe { call(number::CLOCK_GETTIME, clock as usize, into as usize, 0, 0, 0) })
}

/// A clock that is always there.
fn kernel_clock(clock: c_int) -> TimeSpec {
    let mut now = TimeSpec { seconds: 0, nanos: 0 };
    read_clock(clock, &mut now);
    now
}

fn in_nanos(time: TimeSpec) -> i64 {
    time.seconds.saturating_mul(NANOS).saturating_add(time.nanos)
}

/// Whether a clock tells the time of day.
fn is_wall(clock: c_int) -> bool {
    matches!(clock, CLOCK_REALTIME | CLOCK_REALTIME_COARSE | CLOCK_REALTIME_ALARM | CLOCK_TAI)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: c_int, into: *mut TimeSpec) -> c_int {
    let answer = read_clock(clock, into);
    if answer == 0 && is_wall(clock) {
        // SAFETY: it has just been written.
        unsafe { (*into).seconds += shift() };
    }
    answer
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gettimeofday(into: *mut TimeVal, zone: *mut c_void) -> c_int {
    if !zone.is_null() {
        // SAFETY: the kernel checks the addresses.
        let answer = outcome(unsafe { call(number::GETTIMEOFDAY, into as usize, zone as usize, 0, 0, 0) });
        if answer != 0 || into.is_null() {
            return answer;
        }
        // SAFETY: it has just been written.
        unsafe { (*into).seconds += shift() };
    } else if !into.is_null() {
        let now = kernel_clock(CLOCK_REALTIME);
        // SAFETY: the caller's structure.
        unsafe { *into = TimeVal { seconds: now.seconds + shift(), micros: now.nanos / 1000 } };
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn time(into: *mut i64) -> i64 {
    let seconds = kernel_clock(CLOCK_REALTIME_COARSE).seconds + shift();
    if !into.is_null() {
        // SAFETY: the caller's variable.
        unsafe { *into = seconds };
    }
    seconds
}

#[unsafe(no_mangle)]
unsafe extern "C" fn timespec_get(into: *mut TimeSpec, base: c_int) -> c_int {
    const TIME_UTC: c_int = 1;
    if base != TIME_UTC {
        return forward!(TIMESPEC_GET(into => *mut TimeSpec, base => c_int) -> c_int, else 0);
    }
    // SAFETY: the caller's structure.
    unsafe { clock_gettime(CLOCK_REALTIME, into) };
    base
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ftime(into: *mut TimeB) -> c_int {
    let now = kernel_clock(CLOCK_REALTIME);
    let millis = (now.nanos / 1_000_000) as c_ushort;
    // SAFETY: the caller's structure.
    unsafe { *into = TimeB { seconds: now.seconds + shift(), millis, zone: 0, daylight: 0 } };
    0
}

// ---- deadlines -------------------------------------------------------------------------------------------------------

/// A deadline as the kernel's clocks count. One that lies nearer to the shifted time than to the real time belongs to
/// the shifted clock and is moved; all others, those of the monotonic clock among them, stay.
fn on_kernel_clock(deadline: TimeSpec) -> TimeSpec {
    let shift = shift();
    if shift == 0 {
        return deadline;
    }
    let now = kernel_clock(CLOCK_REALTIME).seconds;
    let middle = now.saturating_add(shift / 2);
    let shifted = if shift > 0 {
        deadline.seconds >= middle
    } else {
        let uptime = kernel_clock(CLOCK_MONOTONIC).seconds;
        deadline.seconds <= middle && deadline.seconds > uptime.saturating_add((now + shift - uptime) / 2)
    };
    if shifted { TimeSpec { seconds: deadline.seconds.saturating_sub(shift), ..deadline } } else { deadline }
}

/// What to hand on in the place of `given`, with room for it in `moved`.
fn deadline_for(given: *const TimeSpec, moved: &mut TimeSpec) -> *const TimeSpec {
    if given.is_null() || shift() == 0 {
        return given;
    }
    // SAFETY: the caller's structure.
    *moved = on_kernel_clock(unsafe { *given });
    moved
}

/// Stand-ins whose last argument is a deadline; one named `clock` before it says of which clock.
macro_rules! timed {
    ($($name:ident = $real:ident($($argument:ident: $kind:ty),*) else $missing:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $kind,)* deadline: *const TimeSpec) -> c_int {
            let mut moved = TimeSpec { seconds: 0, nanos: 0 };
            let deadline = deadline_for(deadline, &mut moved);
            forward!($real($($argument => $kind,)* deadline => *const TimeSpec) -> c_int, else $missing)
        }
    )*};
}

macro_rules! timed_by_clock {
    ($($name:ident = $real:ident($($argument:ident: $kind:ty),*) else $missing:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $kind,)* clock: c_int, deadline: *const TimeSpec) -> c_int {
            let mut moved = TimeSpec { seconds: 0, nanos: 0 };
            let deadline = if is_wall(clock) { deadline_for(deadline, &mut moved) } else { deadline };
            forward!($real($($argument => $kind,)* clock => c_int, deadline => *const TimeSpec) -> c_int, else $missing)
        }
    )*};
}

timed! {
    sem_timedwait = SEM_TIMEDWAIT(semaphore: *mut c_void) else failed(ENOSYS);
    pthread_cond_timedwait = COND_TIMEDWAIT(condition: *mut c_void, mutex: *mut c_void) else ENOSYS;
    pthread_mutex_timedlock = MUTEX_TIMEDLOCK(mutex: *mut c_void) else ENOSYS;
    pthread_rwlock_timedrdlock = READ_TIMEDLOCK(lock: *mut c_void) else ENOSYS;
    pthread_rwlock_timedwrlock = WRITE_TIMEDLOCK(lock: *mut c_void) else ENOSYS;
    pthread_timedjoin_np = TIMEDJOIN(thread: c_ulong, value: *mut c_void) else ENOSYS;
    cnd_timedwait = C11_COND(condition: *mut c_void, mutex: *mut c_void) else THRD_ERROR;
    mtx_timedlock = C11_MUTEX(mutex: *mut c_void) else THRD_ERROR;
    mq_timedsend = MQ_SEND(queue: c_int, text: *const c_void, size: usize, priority: c_uint) else failed(ENOSYS);
}

timed_by_clock! {
    sem_clockwait = SEM_CLOCKWAIT(semaphore: *mut c_void) else failed(ENOSYS);
    pthread_cond_clockwait = COND_CLOCKWAIT(condition: *mut c_void, mutex: *mut c_void) else ENOSYS;
    pthread_mutex_clocklock = MUTEX_CLOCKLOCK(mutex: *mut c_void) else ENOSYS;
    pthread_rwlock_clockrdlock = READ_CLOCKLOCK(lock: *mut c_void) else ENOSYS;
    pthread_rwlock_clockwrlock = WRITE_CLOCKLOCK(lock: *mut c_void) else ENOSYS;
    pthread_clockjoin_np = CLOCKJOIN(thread: c_ulong, value: *mut c_void) else ENOSYS;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mq_timedreceive(
    queue: c_int,
    text: *mut c_void,
    size: usize,
    priority: *mut c_uint,
    deadline: *const TimeSpec,
) -> isize {
    let mut moved = TimeSpec { seconds: 0, nanos: 0 };
    let deadline = deadline_for(deadline, &mut moved);
    forward!(
        MQ_RECEIVE(queue => c_int, text => *mut c_void, size => usize, priority => *mut c_uint, deadline => *const TimeSpec)
            -> isize,
        else failed(ENOSYS) as isize
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_nanosleep(
    clock: c_int,
    flags: c_int,
    time: *const TimeSpec,
    left: *mut TimeSpec,
) -> c_int {
    let mut moved = TimeSpec { seconds: 0, nanos: 0 };
    let time = if flags & ABSOLUTE != 0 && is_wall(clock) { deadline_for(time, &mut moved) } else { time };
    forward!(
        NANOSLEEP(clock => c_int, flags => c_int, time => *const TimeSpec, left => *mut TimeSpec) -> c_int,
        // SAFETY: the kernel checks the addresses.
        else -(unsafe { call(number::CLOCK_NANOSLEEP, clock as usize, flags as usize, time as usize, left as usize, 0) } as c_int)
    )
}

/// What to hand on in the place of a timer's setting.
fn timer_for(flags: c_int, given: *const TimerSpec, moved: &mut TimerSpec) -> *const TimerSpec {
    if flags & ABSOLUTE == 0 || given.is_null() || shift() == 0 {
        return given;
    }
    // SAFETY: the caller's structure.
    *moved = unsafe { *given };
    moved.value = on_kernel_clock(moved.value);
    moved
}

const NO_TIMER: TimerSpec =
    TimerSpec { interval: TimeSpec { seconds: 0, nanos: 0 }, value: TimeSpec { seconds: 0, nanos: 0 } };

#[unsafe(no_mangle)]
unsafe extern "C" fn timer_settime(
    timer: *mut c_void,
    flags: c_int,
    new: *const TimerSpec,
    old: *mut TimerSpec,
) -> c_int {
    let mut moved = NO_TIMER;
    let new = timer_for(flags, new, &mut moved);
    forward!(
        TIMER(timer => *mut c_void, flags => c_int, new => *const TimerSpec, old => *mut TimerSpec) -> c_int,
        else failed(ENOSYS)
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn timerfd_settime(
    timer: c_int,
    flags: c_int,
    new: *const TimerSpec,
    old: *mut TimerSpec,
) -> c_int {
    let mut moved = NO_TIMER;
    let new = timer_for(flags, new, &mut moved);
    // SAFETY: the kernel checks the addresses.
    outcome(unsafe {
        call(number::TIMERFD_SETTIME, timer as usize, flags as usize, new as usize, old as usize, 0)
    })
}

// ---- file times that are read ----------------------------------------------------------------------------------------

/// The run's own time span as the kernel counts, in nanoseconds; read once for all times of a file, and only when one
/// of them is not from before the run.
struct Span {
    end: Option<i64>,
}

impl Span {
    fn holds(&mut self, nanos: i64) -> bool {
        nanos >= START.load(Ordering::Relaxed)
            && nanos
                <= *self
                    .end
                    .get_or_insert_with(|| in_nanos(kernel_clock(CLOCK_REALTIME)).saturating_add(SLACK_NANOS))
    }
}

/// Shows the times of a file in the shifted clock, when `answer` says that they are there.
unsafe fn show(answer: c_int, stat: *mut Stat) -> c_int {
    let shift = shift();
    if answer == 0 && shift != 0 {
        let mut span = Span { end: None };
        // SAFETY: the kernel has just filled it.
        for time in unsafe { &mut (*stat).times } {
            if span.holds(in_nanos(*time)) {
                time.seconds += shift;
            }
        }
    }
    answer
}

unsafe fn stat_at(folder: c_int, path: *const c_char, into: *mut Stat, flags: c_int) -> c_int {
    // SAFETY: the kernel checks the addresses.
    unsafe {
        let answer =
            call(number::NEWFSTATAT, folder as usize, path as usize, into as usize, flags as usize, 0);
        show(outcome(answer), into)
    }
}

unsafe fn stat_of(descriptor: c_int, into: *mut Stat) -> c_int {
    // SAFETY: the kernel checks the address.
    unsafe { show(outcome(call(number::FSTAT, descriptor as usize, into as usize, 0, 0, 0)), into) }
}

/// Whether a caller of the `__xstat` family means the structure that there is: 0 or 1 on these machines.
fn known_layout(version: c_int) -> bool {
    matches!(version, 0 | 1)
}

macro_rules! stats {
    ($($stat:ident $lstat:ident $fstat:ident $fstatat:ident, $xstat:ident $lxstat:ident $fxstat:ident $fxstatat:ident;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $stat(path: *const c_char, into: *mut Stat) -> c_int {
            unsafe { stat_at(AT_FDCWD, path, into, 0) }
        }
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $lstat(path: *const c_char, into: *mut Stat) -> c_int {
            unsafe { stat_at(AT_FDCWD, path, into, AT_SYMLINK_NOFOLLOW) }
        }
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $fstat(descriptor: c_int, into: *mut Stat) -> c_int {
            unsafe { stat_of(descriptor, into) }
        }
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $fstatat(folder: c_int, path: *const c_char, into: *mut Stat, flags: c_int) -> c_int {
            unsafe { stat_at(folder, path, into, flags) }
        }
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $xstat(version: c_int, path: *const c_char, into: *mut Stat) -> c_int {
            if known_layout(version) { unsafe { stat_at(AT_FDCWD, path, into, 0) } } else { failed(EINVAL) }
        }
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $lxstat(version: c_int, path: *const c_char, into: *mut Stat) -> c_int {
            if known_layout(version) {
                unsafe { stat_at(AT_FDCWD, path, into, AT_SYMLINK_NOFOLLOW) }
            } else {
                failed(EINVAL)
            }
        }
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $fxstat(version: c_int, descriptor: c_int, into: *mut Stat) -> c_int {
            if known_layout(version) { unsafe { stat_of(descriptor, into) } } else { failed(EINVAL) }
        }
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $fxstatat(
            version: c_int,
            folder: c_int,
            path: *const c_char,
            into: *mut Stat,
            flags: c_int,
        ) -> c_int {
            if known_layout(version) { unsafe { stat_at(folder, path, into, flags) } } else { failed(EINVAL) }
        }
    )*};
}

stats! {
    stat lstat fstat fstatat, __xstat __lxstat __fxstat __fxstatat;
    stat64 lstat64 fstat64 fstatat64, __xstat64 __lxstat64 __fxstat64 __fxstatat64;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn statx(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    into: *mut Statx,
) -> c_int {
    // SAFETY: the kernel checks the addresses.
    let answer = outcome(unsafe {
        call(number::STATX, folder as usize, path as usize, flags as usize, mask as usize, into as usize)
    });
    let shift = shift();
    if answer == 0 && shift != 0 {
        let mut span = Span { end: None };
        // SAFETY: the kernel has just filled it.
        for time in unsafe { &mut (*into).times } {
            if span.holds(in_nanos(TimeSpec { seconds: time.seconds, nanos: i64::from(time.nanos) })) {
                time.seconds += shift;
            }
        }
    }
    answer
}

// ---- file times that are set -----------------------------------------------------------------------------------------

/// Seconds to set, for a time of the shifted clock: those that [`show`] will show as given.
fn seconds_to_set(seconds: i64, nanos: i64) -> i64 {
    let shift = shift();
    let real = seconds.saturating_sub(shift);
    if shift != 0 && (Span { end: None }).holds(in_nanos(TimeSpec { seconds: real, nanos })) {
        real
    } else {
        seconds
    }
}

/// Access and modification time to set; `given` itself when there is nothing to change.
fn times_for(given: *const [TimeSpec; 2], changed: &mut [TimeSpec; 2]) -> *const [TimeSpec; 2] {
    if given.is_null() || shift() == 0 {
        return given;
    }
    // SAFETY: the caller's two structures.
    *changed = unsafe { *given };
    for time in changed.iter_mut() {
        if time.nanos != UTIME_NOW && time.nanos != UTIME_OMIT {
            time.seconds = seconds_to_set(time.seconds, time.nanos);
        }
    }
    changed
}

const NO_TIMES: [TimeSpec; 2] = [TimeSpec { seconds: 0, nanos: 0 }; 2];

#[unsafe(no_mangle)]
unsafe extern "C" fn utimensat(
    folder: c_int,
    path: *const c_char,
    times: *const [TimeSpec; 2],
    flags: c_int,
) -> c_int {
    let mut changed = NO_TIMES;
    let times = times_for(times, &mut changed);
    forward!(
        UTIMENSAT(folder => c_int, path => *const c_char, times => *const [TimeSpec; 2], flags => c_int) -> c_int,
        else set_times(folder, path, times, flags)
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn futimens(descriptor: c_int, times: *const [TimeSpec; 2]) -> c_int {
    let mut changed = NO_TIMES;
    let times = times_for(times, &mut changed);
    forward!(
        FUTIMENS(descriptor => c_int, times => *const [TimeSpec; 2]) -> c_int,
        else set_times(descriptor, null(), times, 0)
    )
}

fn set_times(folder: c_int, path: *const c_char, times: *const [TimeSpec; 2], flags: c_int) -> c_int {
    // SAFETY: the kernel checks the addresses.
    outcome(unsafe {
        call(number::UTIMENSAT, folder as usize, path as usize, times as usize, flags as usize, 0)
    })
}

/// The older functions count in microseconds; all of them are this one in the kernel.
fn set_times_in_micros(
    folder: c_int,
    path: *const c_char,
    times: *const [TimeVal; 2],
    flags: c_int,
) -> c_int {
    if times.is_null() {
        return set_times(folder, path, null(), flags);
    }
    let mut spelled = NO_TIMES;
    // SAFETY: the caller's two structures.
    for (time, given) in spelled.iter_mut().zip(unsafe { &*times }) {
        if given.micros < 0 || given.micros >= 1_000_000 {
            return failed(EINVAL);
        }
        let nanos = given.micros * 1000;
        *time = TimeSpec { seconds: seconds_to_set(given.seconds, nanos), nanos };
    }
    set_times(folder, path, &raw const spelled, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn utimes(path: *const c_char, times: *const [TimeVal; 2]) -> c_int {
    set_times_in_micros(AT_FDCWD, path, times, 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn lutimes(path: *const c_char, times: *const [TimeVal; 2]) -> c_int {
    set_times_in_micros(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn futimes(descriptor: c_int, times: *const [TimeVal; 2]) -> c_int {
    set_times_in_micros(descriptor, null(), times, 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn futimesat(folder: c_int, path: *const c_char, times: *const [TimeVal; 2]) -> c_int {
    set_times_in_micros(folder, path, times, 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn utime(path: *const c_char, times: *const UtimBuf) -> c_int {
    if times.is_null() {
        return set_times(AT_FDCWD, path, null(), 0);
    }
    // SAFETY: the caller's structure.
    let given = unsafe { *times };
    let set = [given.accessed, given.modified]
        .map(|seconds| TimeSpec { seconds: seconds_to_set(seconds, 0), nanos: 0 });
    set_times(AT_FDCWD, path, &raw const set, 0)
}

// ---- without the standard library ------------------------------------------------------------------------------------

#[panic_handler]
fn never(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        // SAFETY: ends the process.
        unsafe { call(number::EXIT_GROUP, 134, 0, 0, 0, 0) };
    }
}

const _: () = {
    assert!(size_of::<Stat>() == 120 && size_of::<Statx>() == 128 && size_of::<TimerSpec>() == 32);
};
