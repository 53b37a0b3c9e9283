package reason

import (
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
)

// Domain is the domain of all reasons.
const Domain = "hdsd"

// Reasons. An error without one of these has the name of its gRPC code as its reason.
const (
	UnknownCluster   = "UNKNOWN_CLUSTER"   // no cluster of that name was ever known
	UnknownSource    = "UNKNOWN_SOURCE"    // no source of that name is configured
	UnknownReceiver  = "UNKNOWN_RECEIVER"  // no receiver of notifications of that name is configured
	UnknownOverride  = "UNKNOWN_OVERRIDE"  // there is no such override
	NothingHeld      = "NOTHING_HELD"      // nothing of the source waits to be accepted
	HoldChanged      = "HOLD_CHANGED"      // what is held is not what the caller has seen
	RoleMissing      = "ROLE_MISSING"      // no grant gives the caller the role; metadata: role
	CallerUnknown    = "CALLER_UNKNOWN"    // the call needs a role, and who calls is not known; metadata: role
	OtherClusters    = "OTHER_CLUSTERS"    // the caller's grants are for some clusters only
	GrantsChanged    = "GRANTS_CHANGED"    // the caller's clusters are others now: call again
	TokenInvalid     = "TOKEN_INVALID"     // a page or resume token is not one that hdsd gave out for this question
	HistoryForgotten = "HISTORY_FORGOTTEN" // what was asked for is older than the history
	LimitReached     = "LIMIT_REACHED"     // a limit that callers share is reached: try again later
	BackupRuns       = "BACKUP_RUNS"       // another backup is in progress
	Stopping         = "STOPPING"          // hdsd is shutting down
	DiskFailing      = "DISK_FAILING"      // nothing has changed, since the disk does not take it
)

// Of returns the reason in an error of hdsd, or "".
func Of(err error) string {
	if err == nil {
		return ""
	}
	return info(status.Convert(err)).GetReason()
}

// New makes an error with a reason, and with pairs of key and value that say more.
func New(code codes.Code, reason, message string, metadata ...string) error {
	return With(status.New(code, message), reason, metadata...).Err()
}

// With adds a reason to a status, and pairs of key and value that say more.
func With(said *status.Status, reason string, metadata ...string) *status.Status {
	detail := &errdetails.ErrorInfo{Reason: reason, Domain: Domain}
	for i := 0; i+1 < len(metadata); i += 2 {
		if detail.Metadata == nil {
			detail.Metadata = make(map[string]string)
		}
		detail.Metadata[metadata[i]] = metadata[i+1]
	}
	return add(said, detail)
}

// Complete returns a status that has a reason: its own, or the name of its code.
func Complete(said *status.Status) *status.Status {
	if said.Code() == codes.OK || info(said) != nil {
		return said
	}
	return With(said, code.Code_name[int32(said.Code())])
}

func info(said *status.Status) *errdetails.ErrorInfo {
	for _, detail := range said.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == Domain {
			return info
		}
	}
	return nil
}

// add appends a detail. A status that cannot have one stays as it is.
func add(said *status.Status, detail protoadapt.MessageV1) *status.Status {
	if detailed, err := said.WithDetails(detail); err == nil {
		return detailed
	}
	return said
}
