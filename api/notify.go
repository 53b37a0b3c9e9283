package api

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// NotifyPath is the REST path for receivers of notifications.
const NotifyPath = "/v1/notify"

// Receiver is a receiver of notifications.
type Receiver struct {
	Name, Type   string
	Open, Queued int
	LastSuccess  time.Time // zero: none since the start
	LastError    string    // empty if the latest one succeeded
	FailingSince time.Time // zero if it does not fail
	Dropped      uint64
	DeadLetters  []DeadLetter // newest first
}

// DeadLetter is a notification that was not delivered.
type DeadLetter struct {
	Time          time.Time
	Kind, Summary string
	Resolved      bool // it reported the end of a problem
	Error         string
}

// ListReceivers returns the receivers of notifications.
func (c *Control) ListReceivers(context.Context, *hdsdv1.ListReceiversRequest) (*hdsdv1.ListReceiversResponse, error) {
	return &hdsdv1.ListReceiversResponse{Receivers: convertList(c.controller.Receivers(), receiverMessage)}, nil
}

// NotifyTest sends a marked notification.
func (c *Control) NotifyTest(ctx context.Context, r *hdsdv1.NotifyTestRequest) (*hdsdv1.NotifyTestResponse, error) {
	name, err := oneLine("name", r.GetName(), maxName)
	if err == nil && name == "" {
		err = status.Error(codes.InvalidArgument, "name: is required: of the receiver, as 'hdsd notify list' shows it")
	}
	if err != nil {
		return nil, err
	}
	author, err := authorOf(ctx, r.GetAuthor())
	if err != nil {
		return nil, err
	}
	ok, answer, err := c.controller.NotifyTest(ctx, name, author)
	if _, failed := durability(err); failed != nil { // whether the audit is on disk does not matter here
		return nil, failed
	}
	return &hdsdv1.NotifyTestResponse{Ok: ok, Answer: answer}, nil
}

func receiverMessage(r Receiver) *hdsdv1.Receiver {
	m := &hdsdv1.Receiver{
		Name: r.Name, Type: r.Type, Open: uint32(r.Open), Queued: uint32(r.Queued), LastError: r.LastError, Dropped: r.Dropped,
		LastSuccess: timeMessage(r.LastSuccess), FailingSince: timeMessage(r.FailingSince),
	}
	for i := range r.DeadLetters {
		d := &r.DeadLetters[i]
		m.DeadLetters = append(m.DeadLetters, &hdsdv1.Receiver_DeadLetter{
			Time: timeMessage(d.Time), Kind: d.Kind, Summary: d.Summary, Resolved: d.Resolved, Error: d.Error,
		})
	}
	return m
}
