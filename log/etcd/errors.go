package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// These errors come from etcd, or from the connection to it. Sessions, campaigns and followers retry
// after each of them, and Status has the error. Commits and trims retry after ErrUnavailable and ErrTLS; Status has the other errors of commits.
var (
	ErrUnavailable    = errors.New("etcd does not answer: see that most of its members run and that this machine reaches them")
	ErrTLS            = errors.New("no TLS connection to etcd: see that the certificates, their authorities and the names in them fit, on both sides")
	ErrAuthentication = errors.New("etcd refuses the user: see that username and password are those of a user of etcd")
	ErrPermission     = errors.New("etcd denies the user this: grant its role readwrite on the prefix")
	ErrNoSpace        = errors.New("etcd has no space: compact and defragment it or raise its quota, then disarm its NOSPACE alarm (etcdctl alarm disarm)")
)

// These errors are about the term of a leader.
var (
	ErrFenced   = errors.New("this replica is not the leader of this epoch: campaign again")
	ErrTaken    = errors.New("the log has another entry at this sequence: read the log to its head, and commit after that")
	ErrGap      = errors.New("the log does not have the entry before: read the log to its head, and commit after that")
	ErrTooLarge = fmt.Errorf("an entry has at most %d bytes: divide it", MaxPayload)
)

// These errors are about the prefix and the cursor of a replica. Retries do not help.
var (
	ErrTrimmed    = errors.New("the log does not have the entries after the cursor any more: copy the database of another replica")
	ErrOtherFleet = errors.New("the prefix belongs to another fleet: give this fleet another prefix; or, if this replica is to join the other fleet, an empty data directory")
	ErrWiped      = errors.New("etcd has lost this fleet: restore etcd from its latest snapshot; or stop all replicas and found the fleet again from the replica with the longest history (hdsd replicas found)")
	ErrRestored   = errors.New("the log in etcd ends before the cursor, as if etcd was restored from an old snapshot: restore a later one; or stop all replicas, and found the fleet again from the replica with the longest history (hdsd replicas found)")
	ErrReplaced   = errors.New("the log in etcd has another entry at the cursor: etcd was restored from an old snapshot, and other replicas went on from there: give this replica an empty data_dir, and it copies the database of another one; or stop all replicas, and found the fleet again from the replica with the longest history (hdsd replicas found)")
	ErrDamaged    = errors.New("something else has changed the keys of the log: nothing but hdsd may write below the prefix; restore etcd from its latest snapshot")
	ErrFounded    = errors.New("the prefix is not empty: a fleet is founded only in an empty one")
)

// ErrChanged ends a founding for which the prefix is not as the operator has seen it.
var ErrChanged = errors.New("a replica has opened a session, or the prefix belongs to another fleet since: stop all replicas, and try again")

// ErrDuplicate is in the status of a replica while another process has its id.
var ErrDuplicate = errors.New("another process has the id of this replica: give each replica its own; this one waits until the other has ended")

// classify returns an error with the operation, its kind among the errors above, and etcd's message.
func classify(operation string, err error) error {
	if err == nil {
		return nil
	}
	if kind := kindOf(err); kind != nil {
		return fmt.Errorf("%s: %w (%s)", operation, kind, messageOf(err))
	}
	return fmt.Errorf("%s: %w", operation, err)
}

func kindOf(err error) error {
	switch text := messageOf(err); text {
	case saysNoSpace:
		return ErrNoSpace
	case saysAuthFailed, saysUserEmpty, saysUserNotFound, saysInvalidAuthToken, saysAuthOldRevision:
		return ErrAuthentication
	case saysPermissionDenied:
		return ErrPermission
	case saysRequestTooLarge:
		return ErrTooLarge
	default:
		if strings.Contains(text, "authentication handshake failed") {
			return ErrTLS
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return ErrUnavailable
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.ResourceExhausted, codes.Aborted:
		return ErrUnavailable
	case codes.Unauthenticated:
		return ErrAuthentication
	case codes.PermissionDenied:
		return ErrPermission
	case codes.DataLoss:
		return ErrDamaged
	}
	return nil
}

// messageOf returns the message of an error of etcd without gRPC's code, which is in the message of
// a canceled watch.
func messageOf(err error) string {
	text := status.Convert(err).Message()
	if _, after, ok := strings.Cut(text, " desc = "); ok && strings.HasPrefix(text, "rpc error: ") {
		return after
	}
	return text
}

// hasMessage reports whether an error has a message of etcd.
func hasMessage(err error, text string) bool { return err != nil && messageOf(err) == text }

// isTransient reports whether another attempt may succeed.
func isTransient(err error) bool { return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrTLS) }

// isFinal reports whether no further attempt helps a follower or a candidate.
func isFinal(err error) bool {
	for _, final := range []error{ErrTrimmed, ErrOtherFleet, ErrWiped, ErrRestored, ErrReplaced, ErrDamaged} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// isTokenStale reports whether a new authentication may help.
func isTokenStale(err error) bool {
	return hasMessage(err, saysInvalidAuthToken) || hasMessage(err, saysAuthOldRevision) || hasMessage(err, saysUserEmpty)
}
