package api

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// errorDomain is the domain of the reasons in errors (google.rpc.ErrorInfo).
const errorDomain = "hdsd"

// Reasons of gRPC errors. Programs should use these, because texts may change.
const (
	ReasonUnknownCluster = "UNKNOWN_CLUSTER" // no cluster of that name was ever known
	ReasonStopping       = "STOPPING"        // hdsd is shutting down
	ReasonDiskFailing    = "DISK_FAILING"    // nothing has changed, since the disk does not take it
)

// ErrStopping is the error for calls while hdsd stops.
var ErrStopping = withReason(codes.Unavailable, ReasonStopping, "hdsd is stopping")

// DiskFailing is the error for what hdsd does not do while the disk takes nothing.
func DiskFailing(text string) error {
	return withReason(codes.Unavailable, ReasonDiskFailing, text)
}

// ReasonOf returns the reason in an error of hdsd, or "".
func ReasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == errorDomain {
			return info.GetReason()
		}
	}
	return ""
}

// retryAfter is when a caller may try again that was refused because of a limit.
const retryAfter = 5 * time.Second

// withRetry adds to a refusal when to try again.
func withRetry(refusal *status.Status) error {
	if detailed, err := refusal.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)}); err == nil {
		return detailed.Err()
	}
	return refusal.Err()
}

// withReason makes an error with a reason.
func withReason(code codes.Code, reason, message string) error {
	plain := status.New(code, message)
	if detailed, err := plain.WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: errorDomain}); err == nil {
		return detailed.Err()
	}
	return plain.Err()
}
