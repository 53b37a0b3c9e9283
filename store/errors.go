package store

import "errors"

// Errors of Open. Their text names the file and says what to do.
var (
	// ErrLocked says that another process has the file open.
	ErrLocked = errors.New("history is in use")

	// ErrVersion says that the file was written by a newer hdsd.
	ErrVersion = errors.New("history is of another version")

	// ErrDamaged says that the file is not a history or is no longer whole.
	ErrDamaged = errors.New("history is damaged")
)

// ErrBadToken says that a page token was not given out for this query.
var ErrBadToken = errors.New("page token is not valid for this query: start again without it")

// ErrTooOld says that the history no longer reaches back to a place.
var ErrTooOld = errors.New("the history does not reach back that far")

// ErrClosed says that the store is closed.
var ErrClosed = errors.New("history is closed")

// Errors that Options.OnError gets beside those of the disk.
var (
	// ErrDropped says that transitions are missing from the history, since the
	// disk did not take them and the queue was full.
	ErrDropped = errors.New("transitions dropped from the history")

	// ErrSkipped says that a damaged value was left out of an answer.
	ErrSkipped = errors.New("damaged value in the history skipped")
)
