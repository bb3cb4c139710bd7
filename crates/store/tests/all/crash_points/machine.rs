//! A server without sockets on such a disk.

use super::*;

/// A server without sockets and the one client it has.
pub(super) struct Machine {
    pub(super) server: Arc<Server>,
    pub(super) keeper: Option<JoinHandle<()>>,
    pub(super) session: Session,
}

impl Machine {
    pub(super) fn start(disk: &CrashingDisk, settings: Settings) -> Result<Self, LoadError> {
        let persistence = Persistence::on(Arc::new(disk.clone()), &settings.data);
        let server = Server::new(settings, 1, registry().len(), Some(persistence));
        let log = load::load(
            &server.store,
            server.store.persistence().unwrap(),
            &mut Replayer::new(&server),
        )?;
        let shared = Arc::clone(&server);
        let keeper = thread::spawn(move || {
            log::run(&shared.store, shared.store.persistence().unwrap(), log);
        });
        let client = Arc::new(Client::unlisted());
        Ok(Machine {
            server,
            keeper: Some(keeper),
            session: Session::new(client, true),
        })
    }

    /// Runs commands that came together; returns their replies.
    pub(super) fn run(&mut self, commands: &[Command], now: Now) -> Vec<Reply> {
        let (mut bytes, mut batch, mut out) = (Vec::new(), Batch::default(), Vec::new());
        for command in commands {
            encode_request(command, &mut bytes);
        }
        let limits = Limits::default();
        RequestParser::new()
            .parse(&bytes, &limits, &mut batch)
            .unwrap();
        let mut args = Vec::new();
        batch.resolve(&bytes, &mut args);
        let mut settings = self.server.config.snapshot();
        let start = Instant::now();
        let mut executor = Executor {
            server: &self.server,
            stats: &self.server.workers[0],
            settings: &mut settings,
            session: &mut self.session,
            now,
            mark: start,
            until: start + Duration::from_secs(86_400),
            last: None,
            out: &mut out,
        };
        let executed = execute(&mut executor, &batch, &args, 0, None);
        assert!(executed.work.is_none(), "no value is large");
        assert_eq!(executed.next, batch.len());
        let mut replies = Vec::new();
        let mut from = 0;
        while let Some((reply, used)) = decode(&out[from..], &DecodeLimits::default()).unwrap() {
            replies.push(reply);
            from += used;
        }
        replies
    }

    /// Whether the replies to what has run may leave: waits for the disk as a connection does.
    pub(super) fn acknowledged(&mut self) -> bool {
        let written = std::mem::take(&mut self.session.written);
        if written == 0 {
            return true;
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.server.store.journal.written() < written {
            self.server.store.journal.wake_for_records();
            if self.server.store.failure().is_some() || !self.server.store.can_log() {
                return false;
            }
            assert!(
                Instant::now() < deadline,
                "the log is written or the server fails"
            );
            thread::sleep(Duration::from_micros(20));
        }
        true
    }

    /// Waits for work in the background.
    pub(super) fn settle(&self) {
        while self.server.store.persistence().unwrap().is_busy()
            && self.server.store.failure().is_none()
        {
            thread::sleep(Duration::from_micros(100));
        }
    }

    pub(super) fn state(&self) -> State {
        state_of(&self.server)
    }

    /// Ends the server in good order, as far as the disk lets it.
    pub(super) fn stop(mut self) {
        self.end();
    }

    pub(super) fn end(&mut self) {
        let Some(keeper) = self.keeper.take() else {
            return;
        };
        self.server.store.persistence().unwrap().end_jobs();
        self.server.store.journal.close();
        keeper.join().unwrap();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.end();
    }
}
