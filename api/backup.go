package api

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

const (
	// partSize is the number of bytes of a copy in one message.
	partSize = 256 << 10

	// partPatience bounds the time that a client takes for one part, because other clients wait
	// for it.
	partPatience = time.Minute
)

// Copy is a copy of the database, to be sent to a client.
type Copy interface {
	io.Reader

	// Context ends when the client disconnects, or hdsd stops.
	Context() context.Context

	// Size returns the size of the whole copy in bytes.
	Size() int64

	// Close releases the copy. failure is the reason why it was not delivered; nil if it was.
	Close(failure error)
}

// Backup sends a copy of the database, part by part.
func (c *Control) Backup(_ *hdsdv1.BackupRequest, stream grpc.ServerStreamingServer[hdsdv1.BackupResponse]) error {
	copied, err := c.controller.Backup(stream.Context())
	if err != nil {
		return grpcError(err)
	}
	err = deliver(copied, stream)
	copied.Close(err)
	return grpcError(err)
}

func deliver(copied Copy, stream grpc.ServerStreamingServer[hdsdv1.BackupResponse]) error {
	part := make([]byte, partSize)
	for {
		n, err := io.ReadFull(copied, part)
		if n > 0 {
			if err := sendInTime(copied.Context(), stream, &hdsdv1.BackupResponse{Size: copied.Size(), Data: part[:n]}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// sendInTime sends a message, which the client must read within partPatience. On error the
// caller has to return, which ends a pending Send.
func sendInTime(ctx context.Context, stream grpc.ServerStreamingServer[hdsdv1.BackupResponse], m *hdsdv1.BackupResponse) error {
	done := make(chan error, 1)
	go func() { done <- stream.Send(m) }()
	late := time.NewTimer(partPatience)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-late.C:
		return status.Errorf(codes.DeadlineExceeded, "the client has taken nothing for %v: write the copy to a file, or to a program that keeps reading", partPatience)
	}
}
