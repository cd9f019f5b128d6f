//! The accountant with one session, and with several beyond the limit of all.

use super::*;

fn settings(own: u64, all: u64) -> SessionSettings {
    SessionSettings {
        memory_limits: MemoryLimits { connection: own, server: all },
        ..SessionSettings::default()
    }
}

#[test]
fn a_limit_refuses_and_leaves_nothing_behind() {
    let server = Arc::new(ServerMemory::default());
    let sessions = [(); 2].map(|()| Arc::new(SessionMemory::of(server.clone())));
    let limits = settings(4 * CHUNK, 6 * CHUNK);
    let mut first = Account::new(&sessions[0]);
    first.grow(4 * CHUNK as usize, &limits).unwrap();
    let refused = first.grow(1, &limits).unwrap_err();
    assert_eq!(refused.code, 3170);
    assert!(refused.message.contains("'connection_memory_limit'"), "{refused}");
    let mut second = Account::new(&sessions[1]);
    let refused = second.grow(3 * CHUNK as usize, &limits).unwrap_err();
    assert!(refused.message.contains("'global_connection_memory_limit'"), "{refused}");
    assert_eq!((second.used(), server.used()), (0, 4 * CHUNK));
    drop(first);
    second.grow(3 * CHUNK as usize, &limits).unwrap();
    drop(second);
    assert_eq!((server.used(), sessions[0].used()), (0, 0));
}

/// MEMORY-1.
#[test]
fn the_allocator_is_asked_for_what_was_given_back_before_more_is_taken() {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    set_collector(|| {
        ASKED.fetch_add(1, Ordering::Relaxed);
    });
    let asked = || ASKED.swap(0, Ordering::Relaxed);
    let server = Arc::new(ServerMemory::default());
    let (session, limits) = (Arc::new(SessionMemory::of(server)), settings(u64::MAX, 64 << 20));
    let take = |bytes: u64| Account::new(&session).grow(bytes as usize, &limits).unwrap();
    take(10 << 20);
    take(10 << 20);
    assert_eq!(asked(), 0, "a quarter of the limit was not given back yet");
    take(1);
    assert_eq!(asked(), 1, "before the next one takes anything");
    take(10 << 20);
    assert_eq!(asked(), 0, "once for what was given back");
    (0..1000).for_each(|_| take(CHUNK));
    assert_eq!(asked(), 0, "short statements are a thousand chunks, which the allocator uses again");
}

/// MEMORY-1.
#[test]
fn who_holds_little_goes_on_beyond_the_servers_limit_and_who_holds_much_does_not() {
    let server = Arc::new(ServerMemory::default());
    let limits = settings(u64::MAX, 64 * CHUNK);
    let session = || Arc::new(SessionMemory::of(server.clone()));
    let mut large = Account::new(&session());
    large.grow(64 * CHUNK as usize, &limits).unwrap();
    assert_eq!(large.grow(CHUNK as usize, &limits).unwrap_err().code, 3170, "who has it all");
    let mut small: Vec<Account> = (0..8).map(|_| Account::new(&session())).collect();
    small.iter_mut().for_each(|account| account.grow(100, &limits).unwrap());
    assert_eq!(small[0].grow(2 * CHUNK as usize, &limits).unwrap_err().code, 3170, "one that grows");
    assert_eq!(Account::new(&session()).grow(100, &limits).unwrap_err().code, 3170, "there is an end");
    drop((large, small));
    assert_eq!(server.used(), 0);
}

/// MEMORY-1.
#[test]
fn the_session_that_holds_most_gives_way_to_the_others() {
    let server = Arc::new(ServerMemory::default());
    let limits = settings(u64::MAX, 64 * CHUNK + 3 * CONNECTION);
    let kills = [(); 3].map(|()| Arc::new(KillFlag::default()));
    let mut clients = kills.clone().map(|kill| Account::new(&SessionMemory::of_client(server.clone(), kill)));
    let chunks = |n: u64| (n * CHUNK) as usize;
    for (client, held) in clients.iter_mut().zip([40, 16, 8]) {
        client.grow(chunks(held), &limits).unwrap();
    }
    let ended = |n: usize| kills[n].check_memory().err().map(|error| error.code);
    assert!(!clients[1].has_room(chunks(1), u64::MAX, &limits), "who has a file writes it");
    assert_eq!(ended(0), None);
    clients[1].grow(chunks(2), &limits).unwrap();
    clients[2].grow(chunks(2), &limits).unwrap();
    assert_eq!((ended(0), ended(1), ended(2)), (Some(3170), None, None));
    assert_eq!(ended(0), None, "once");
    assert_eq!(clients[0].grow(chunks(1), &limits).unwrap_err().code, 3170, "the largest itself");
    assert_eq!(clients[1].grow(chunks(8), &limits).unwrap_err().code, 3170, "beyond the eighth");
    clients[0].clear();
    clients[1].grow(chunks(8), &limits).unwrap();
    assert_eq!((ended(0), ended(1), ended(2)), (None, None, None), "there is room again");
}

#[test]
fn thousands_of_small_things_are_counted_as_what_they_are() {
    let session = Arc::new(SessionMemory::default());
    let limits = MemoryLimits { connection: 10 * CHUNK, server: u64::MAX };
    let account = || {
        let mut account = Account::new(&session);
        account.grow_exactly(1000, limits).map(|()| account)
    };
    let held: Vec<Account> = std::iter::repeat_with(account).map_while(Result::ok).collect();
    assert_eq!(held.len() as u64, 10 * CHUNK / 1000);
    assert_eq!(session.used(), held.len() as u64 * 1000);
    assert_eq!(session.server().used(), 10 * CHUNK, "chunks of the server's");
    drop(held);
    assert_eq!((session.used(), session.server().used()), (0, 0));
}

/// MEMORY-1.
#[test]
fn thousands_of_connections_count_with_the_little_that_each_has() {
    let server = Arc::new(ServerMemory::default());
    let client = || SessionMemory::of_client(server.clone(), Arc::new(KillFlag::default()));
    let clients = [(); 100].map(|()| client());
    assert_eq!(server.used(), 100 * CONNECTION, "who does nothing");
    let limits = MemoryLimits { connection: u64::MAX, server: 100 * (CONNECTION + PIECE) };
    let mut held = clients.each_ref().map(Account::new);
    held.iter_mut().for_each(|account| account.grow_exactly(10_000, limits).unwrap());
    assert_eq!(server.used(), 100 * (CONNECTION + PIECE), "a piece each, and no chunk");
    for account in &mut held {
        let mut more = account.like();
        more.grow_within(4 * CHUNK as usize, MemoryLimits::default()).unwrap();
    }
    assert_eq!(server.used(), 100 * (CONNECTION + PIECE), "and no more behind a statement that had much");
    drop((held, clients));
    assert_eq!(server.used(), 0);
}

#[test]
fn an_operator_with_a_file_has_a_little_whatever_the_limits_say() {
    let session = Arc::new(SessionMemory::default());
    let limits = settings(CHUNK, u64::MAX);
    let mut account = Account::new(&session);
    assert!(!account.has_room(2, 1, &limits), "its own budget is the first to say no");
    assert!(account.has_room(LEAST as usize, u64::MAX, &limits));
    assert!(!account.has_room(1, u64::MAX, &limits));
    assert_eq!(account.used(), LEAST);
    drop(account);
    assert_eq!(session.used(), 0);
}

#[test]
fn what_grows_and_shrinks_by_turns_asks_the_server_once() {
    let session = Arc::new(SessionMemory::default());
    let limits = settings(u64::MAX, u64::MAX);
    let mut account = Account::new(&session);
    for _ in 0..100 {
        account.grow(CHUNK as usize + 1, &limits).unwrap();
        assert_eq!(session.used(), 2 * CHUNK);
        account.shrink(CHUNK as usize + 1);
    }
    assert_eq!(account.grow(usize::MAX, &limits).unwrap_err().code, 3170, "more than there is");
    account.resize(10 * CHUNK as usize, MemoryLimits::of(&limits)).unwrap();
    account.resize(1, MemoryLimits::of(&limits)).unwrap();
    assert!(session.used() <= 2 * CHUNK);
    account.clear();
    assert_eq!(session.used(), 0);
}
