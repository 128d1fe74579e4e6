//! Whose turn it is: clients take turns, and so do the instances of each. Pure.

use std::collections::{BTreeMap, VecDeque};

/// Who asked, by number.
pub(super) type Client = u64;

/// Pieces of work that wait, by client and instance.
#[derive(Debug)]
pub(super) struct Fair<T> {
    /// Whose turn is next comes first.
    clients: VecDeque<(Client, VecDeque<OfInstance<T>>)>,
    waiting: usize,
    /// How many of each client wait.
    of_client: BTreeMap<Client, usize>,
}

/// What one client wants of one instance.
type OfInstance<T> = (String, VecDeque<T>);

impl<T> Default for Fair<T> {
    fn default() -> Self {
        Fair { clients: VecDeque::new(), waiting: 0, of_client: BTreeMap::new() }
    }
}

impl<T> Fair<T> {
    /// How much waits.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// How much of a client waits.
    pub(super) fn of(&self, client: Client) -> usize {
        self.of_client.get(&client).copied().unwrap_or_default()
    }

    /// How many clients have something that waits.
    pub(super) fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Whether all that waits is for the same instance.
    pub(super) fn is_of_one_instance(&self) -> bool {
        let mut all = self.clients.iter().flat_map(|(_, instances)| instances).map(|(instance, _)| instance);
        let first = all.next();
        all.all(|instance| Some(instance) == first)
    }

    pub(super) fn push(&mut self, client: Client, instance: &str, work: T) {
        self.waiting += 1;
        *self.of_client.entry(client).or_default() += 1;
        let at = self.clients.iter().position(|(one, _)| *one == client).unwrap_or_else(|| {
            self.clients.push_back((client, VecDeque::new()));
            self.clients.len() - 1
        });
        let instances = &mut self.clients[at].1;
        match instances.iter_mut().find(|(one, _)| one == instance) {
            Some((_, all)) => all.push_back(work),
            None => instances.push_back((instance.to_owned(), VecDeque::from([work]))),
        }
    }

    /// The next piece that `may` be begun: of the client whose turn it is, the instance whose turn it is. Both then go to
    /// the end.
    pub(super) fn pop(&mut self, may: impl Fn(Client, &str) -> bool) -> Option<(Client, String, T)> {
        for at in 0..self.clients.len() {
            let (client, instances) = &mut self.clients[at];
            let client = *client;
            let Some(place) = instances.iter().position(|(instance, _)| may(client, instance)) else {
                continue;
            };
            let (instance, mut all) = instances.remove(place)?;
            let work = all.pop_front();
            if !all.is_empty() {
                instances.push_back((instance.clone(), all));
            }
            let is_left = !instances.is_empty();
            let whole = self.clients.remove(at)?;
            if is_left {
                self.clients.push_back(whole);
            }
            self.forget(client);
            return work.map(|work| (client, instance, work));
        }
        None
    }

    /// Takes out what is of no use any more.
    pub(super) fn take_out(&mut self, is_over: impl Fn(&T) -> bool) -> Vec<T> {
        let (mut over, mut of) = (Vec::new(), Vec::new());
        for (client, instances) in &mut self.clients {
            for (_, all) in instances.iter_mut() {
                let (gone, left): (VecDeque<T>, VecDeque<T>) = all.drain(..).partition(&is_over);
                of.extend(gone.iter().map(|_| *client));
                over.extend(gone);
                *all = left;
            }
            instances.retain(|(_, all)| !all.is_empty());
        }
        self.clients.retain(|(_, instances)| !instances.is_empty());
        for client in of {
            self.forget(client);
        }
        over
    }

    fn forget(&mut self, client: Client) {
        self.waiting -= 1;
        if let Some(count) = self.of_client.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.of_client.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(fair: &mut Fair<u32>) -> Vec<u32> {
        std::iter::from_fn(|| fair.pop(|_, _| true)).map(|(_, _, work)| work).collect()
    }

    #[test]
    fn clients_take_turns_and_so_do_instances_of_each() {
        let mut fair = Fair::default();
        for (client, instance, work) in
            [(1, "a", 1), (1, "a", 2), (1, "a", 3), (1, "b", 4), (2, "a", 5), (2, "a", 6), (3, "c", 7)]
        {
            fair.push(client, instance, work);
        }
        assert_eq!((fair.len(), fair.of(1), fair.of(9), fair.clients()), (7, 4, 0, 3));
        assert_eq!(order(&mut fair), [1, 5, 7, 4, 6, 2, 3]);
        assert_eq!((fair.len(), fair.of(1), fair.clients()), (0, 0, 0));
    }

    #[test]
    fn who_may_not_begin_keeps_the_place_and_others_go_before() {
        let mut fair = Fair::default();
        for (client, instance, work) in [(1, "slow", 1), (1, "quick", 2), (2, "slow", 3)] {
            fair.push(client, instance, work);
        }
        assert_eq!(fair.pop(|_, instance| instance != "slow"), Some((1, "quick".to_owned(), 2)));
        assert_eq!(fair.pop(|_, instance| instance != "slow"), None);
        assert_eq!(fair.pop(|client, _| client != 1), Some((2, "slow".to_owned(), 3)));
        assert_eq!(order(&mut fair), [1]);
    }

    #[test]
    fn what_is_over_is_taken_out_whoever_it_is_of() {
        let mut fair = Fair::default();
        for work in 0..6_u32 {
            fair.push(u64::from(work % 2), "a", work);
        }
        let mut over = fair.take_out(|work| *work < 3);
        over.sort_unstable();
        assert_eq!((over, fair.len(), fair.of(0), fair.of(1)), (vec![0, 1, 2], 3, 1, 2));
        assert_eq!(fair.take_out(|_| true).len(), 3);
        assert_eq!((fair.len(), fair.clients()), (0, 0));
    }
}
