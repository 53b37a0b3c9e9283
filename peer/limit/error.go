package limit

import (
	"fmt"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/internal/reason"
)

// Error is a refusal, or the end of a lease that had to make room.
type Error struct {
	Limit    Limit
	Caller   string
	Held     int64 // amount of the caller
	Wants    int64 // further amount that it requested
	Taken    int64 // amount of all callers
	ByCaller bool  // the limit for one caller was reached, not that for all
	Ended    bool  // a lease had to make room
}

// Field returns the configuration field of the limit that was reached.
func (e *Error) Field() string {
	if e.ByCaller && e.Limit.PerCallerField != "" {
		return e.Limit.PerCallerField
	}
	return e.Limit.Field
}

// Error implements error.
func (e *Error) Error() string {
	name, l := Name(e.Caller), &e.Limit
	switch {
	case e.Ended:
		return fmt.Sprintf("%s had the most of all %d %s, and others have less: raise %s if it needs so many", name, l.Total, l.Unit, l.Field)
	case e.ByCaller:
		return fmt.Sprintf("%s has %d of at most %d %s for one caller and asks for %d more: raise %s if it needs so many", name, e.Held, l.PerCaller, l.Unit, e.Wants, e.Field())
	default:
		return fmt.Sprintf("all callers together have %d of at most %d %s, and %s asks for %d more: try again later, or raise %s", e.Taken, l.Total, l.Unit, name, e.Wants, l.Field)
	}
}

// GRPCStatus returns the status that grpc sends, with its reason.
func (e *Error) GRPCStatus() *status.Status {
	return reason.With(status.New(codes.ResourceExhausted, e.Error()), reason.LimitReached)
}

// longestName bounds the part of a caller's key in a message.
const longestName = 200

// Name returns a caller's key as text for people: quoted, and not too long.
func Name(caller string) string {
	if !utf8.ValidString(caller) {
		return fmt.Sprintf("caller %x", caller[:min(len(caller), longestName/2)])
	}
	if len(caller) > longestName {
		caller = caller[:longestName] + "…"
	}
	return fmt.Sprintf("caller %q", caller)
}
