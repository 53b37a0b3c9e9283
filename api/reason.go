package api

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/internal/reason"
)

// ErrStopping is the error for calls while hdsd stops.
var ErrStopping = reason.New(codes.Unavailable, reason.Stopping, "hdsd is stopping")

// DiskFailing is the error of a request that needs the disk while it fails.
func DiskFailing(text string) error {
	return reason.New(codes.Unavailable, reason.DiskFailing, text)
}

// retryAfter is the time after which a caller may retry a call refused by a limit.
const retryAfter = 5 * time.Second

// withRetry adds the time of a retry to a refusal.
func withRetry(refusal *status.Status) error {
	if detailed, err := refusal.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)}); err == nil {
		return detailed.Err()
	}
	return refusal.Err()
}
