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

// DiskFailing is the error for what hdsd does not do while the disk takes nothing.
func DiskFailing(text string) error {
	return reason.New(codes.Unavailable, reason.DiskFailing, text)
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
