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
	UnknownCluster   = "UNKNOWN_CLUSTER"   // no cluster of that name ever existed
	UnknownSource    = "UNKNOWN_SOURCE"    // no source of that name is configured
	UnknownReceiver  = "UNKNOWN_RECEIVER"  // no receiver of that name is configured
	UnknownOverride  = "UNKNOWN_OVERRIDE"  // the override does not exist
	NothingHeld      = "NOTHING_HELD"      // the source has no held loss
	HoldChanged      = "HOLD_CHANGED"      // the held loss differs from the one shown to the caller
	RoleMissing      = "ROLE_MISSING"      // no grant gives the caller the role; metadata: role
	CallerUnknown    = "CALLER_UNKNOWN"    // the call needs a role, and the caller is unknown; metadata: role
	OtherClusters    = "OTHER_CLUSTERS"    // the caller's grants are for some clusters only
	GrantsChanged    = "GRANTS_CHANGED"    // the caller's clusters have changed: call again
	TokenInvalid     = "TOKEN_INVALID"     // a page or resume token is not one that hdsd gave out for this query
	HistoryForgotten = "HISTORY_FORGOTTEN" // the request is for a time before the history
	LimitReached     = "LIMIT_REACHED"     // a shared limit is reached: try again later
	BackupRuns       = "BACKUP_RUNS"       // another backup is in progress
	Stopping         = "STOPPING"          // hdsd is shutting down
	DiskFailing      = "DISK_FAILING"      // nothing has changed, since the disk fails
)

// Of returns the reason in an error of hdsd, or "".
func Of(err error) string {
	if err == nil {
		return ""
	}
	return info(status.Convert(err)).GetReason()
}

// New makes an error with a reason, and with metadata in pairs of key and value.
func New(code codes.Code, reason, message string, metadata ...string) error {
	return With(status.New(code, message), reason, metadata...).Err()
}

// With adds a reason to a status, and metadata in pairs of key and value.
func With(st *status.Status, reason string, metadata ...string) *status.Status {
	detail := &errdetails.ErrorInfo{Reason: reason, Domain: Domain}
	for i := 0; i+1 < len(metadata); i += 2 {
		if detail.Metadata == nil {
			detail.Metadata = make(map[string]string)
		}
		detail.Metadata[metadata[i]] = metadata[i+1]
	}
	return add(st, detail)
}

// Complete returns a status that has a reason: its own, or the name of its code.
func Complete(st *status.Status) *status.Status {
	if st.Code() == codes.OK || info(st) != nil {
		return st
	}
	return With(st, code.Code_name[int32(st.Code())])
}

func info(st *status.Status) *errdetails.ErrorInfo {
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == Domain {
			return info
		}
	}
	return nil
}

// add appends a detail. A status that cannot have one stays the same.
func add(st *status.Status, detail protoadapt.MessageV1) *status.Status {
	if detailed, err := st.WithDetails(detail); err == nil {
		return detailed
	}
	return st
}
