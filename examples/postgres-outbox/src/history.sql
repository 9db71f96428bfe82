-- What the drill reads afterwards: every change of a row, as the database made it.
CREATE TABLE outbox_history (
    step            bigint GENERATED ALWAYS AS IDENTITY,
    id              bigint,
    attempts        integer,
    claimed         boolean,       -- an attempt was started, or else settled
    state           text,
    error           text,
    at              timestamptz,
    next_attempt_at timestamptz
);

CREATE FUNCTION outbox_remember() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox_history (id, attempts, claimed, state, error, at, next_attempt_at)
    VALUES (NEW.id, NEW.attempts, NEW.attempts > OLD.attempts, NEW.state, NEW.last_error, now(), NEW.next_attempt_at);
    RETURN NULL;
END $$;

CREATE TRIGGER outbox_remember AFTER UPDATE ON outbox FOR EACH ROW EXECUTE FUNCTION outbox_remember();
