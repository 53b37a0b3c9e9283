package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// copier is a Controller that has a copy to give.
type copier struct {
	switchboard
	io.Reader
	ctx     context.Context
	size    int64
	refused error
	closed  []error
}

func (c *copier) Backup(context.Context) (Copy, error) {
	if c.refused != nil {
		return nil, c.refused
	}
	return c, nil
}

func (c *copier) Context() context.Context { return c.ctx }
func (c *copier) Size() int64              { return c.size }
func (c *copier) Close(failure error)      { c.closed = append(c.closed, failure) }

// taker is a stream whose client takes so many parts, then no more.
type taker struct {
	grpc.ServerStreamingServer[hdsdv1.BackupResponse]
	ctx   context.Context
	takes int
	taken bytes.Buffer
	sizes map[int64]bool
}

func (r *taker) Context() context.Context { return r.ctx }

func (r *taker) Send(m *hdsdv1.BackupResponse) error {
	if r.takes == 0 {
		<-r.ctx.Done()
		return r.ctx.Err()
	}
	r.takes--
	r.taken.Write(m.GetData())
	r.sizes[m.GetSize()] = true
	return nil
}

func TestBackup(t *testing.T) {
	broken := errors.New("the disk is gone")
	for name, c := range map[string]struct {
		size    int
		refused error
		breaks  bool
		stops   bool
		takes   int
		code    codes.Code
		says    string
	}{
		"empty":         {takes: 1},
		"a part":        {size: 5, takes: 1},
		"whole parts":   {size: 2 * partSize, takes: 2},
		"more":          {size: 2*partSize + 1, takes: 3},
		"another's":     {refused: status.Error(codes.ResourceExhausted, "another is under way"), code: codes.ResourceExhausted, says: "another"},
		"unreadable":    {size: 5, breaks: true, takes: 1, code: codes.Internal, says: "disk is gone"},
		"stuck client":  {size: 5 * partSize, takes: 2, code: codes.DeadlineExceeded, says: "taken nothing for 1m0s"},
		"hdsd stops":    {size: 5, stops: true, code: codes.Unavailable, says: "stopping"},
		"taken nothing": {size: 5, code: codes.DeadlineExceeded, says: "keeps reading"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				whole := bytes.Repeat([]byte("0123456789"), c.size/10+1)[:c.size]
				var from io.Reader = bytes.NewReader(whole)
				if c.breaks {
					from = io.MultiReader(from, iotest.ErrReader(broken))
				}
				ctx, end := context.WithCancel(t.Context()) // as gRPC does when a handler returns
				serving, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				if c.stops {
					stop(status.Error(codes.Unavailable, "hdsd is stopping"))
				}
				give := &copier{Reader: from, ctx: serving, size: int64(c.size), refused: c.refused}
				take := &taker{ctx: ctx, takes: c.takes, sizes: map[int64]bool{}}
				err := NewControl(give).Backup(&hdsdv1.BackupRequest{}, take)
				end()
				if status.Code(err) != c.code || !strings.Contains(status.Convert(err).Message(), c.says) {
					t.Errorf("says %v", err)
				}
				if err == nil && (!bytes.Equal(whole, take.taken.Bytes()) || c.size > 0 && (len(take.sizes) != 1 || !take.sizes[int64(c.size)])) {
					t.Errorf("%d bytes taken, said to be %v", take.taken.Len(), take.sizes)
				}
				if want := 1; c.refused == nil && (len(give.closed) != want || (give.closed[0] == nil) != (err == nil)) {
					t.Errorf("closed with %v", give.closed)
				}
			})
		})
	}
}
