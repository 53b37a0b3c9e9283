package store

import "errors"

// Errors of Open. Their text names the file and says what to do.
var (
	// ErrLocked means that another process has the file open.
	ErrLocked = errors.New("history is in use")

	// ErrVersion means that a newer hdsd wrote the file.
	ErrVersion = errors.New("history is of another version")

	// ErrDamaged means that the file is not a history or is no longer whole.
	ErrDamaged = errors.New("history is damaged")
)

// ErrBadToken means that a page token does not belong to this query.
var ErrBadToken = errors.New("page token is not valid for this query: start again without it")

// ErrTooOld means that the history no longer reaches back to a place.
var ErrTooOld = errors.New("the history does not reach back that far")

// ErrClosed means that the store is closed.
var ErrClosed = errors.New("history is closed")

// Errors that Options.OnError gets besides those of the disk.
var (
	// ErrDropped means that transitions are missing from the history: the queue was full
	// because the disk did not take them.
	ErrDropped = errors.New("transitions dropped from the history")

	// ErrSkipped means that an answer leaves out a damaged value.
	ErrSkipped = errors.New("damaged value in the history skipped")
)
