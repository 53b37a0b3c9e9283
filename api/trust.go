package api

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

// TrustPath is the REST path for trust in checkers.
const TrustPath = "/v1/trust"

// Trust is an operator's decision on whether to believe a checker.
type Trust struct {
	Checker        string
	Trusted        bool // never doubted; else none of its votes counts
	Reason, Author string
	Since          time.Time
}

// String describes the trust on one line.
func (t *Trust) String() string {
	word := "distrusted"
	if t.Trusted {
		word = "trusted"
	}
	return fmt.Sprintf("%s since %s by %s: %s", word, t.Since.UTC().Format(time.RFC3339), t.Author, t.Reason)
}

// SetTrust sets whether a checker is believed.
func (c *Control) SetTrust(ctx context.Context, r *hdsdv1.SetTrustRequest) (*hdsdv1.SetTrustResponse, error) {
	requested, err := requestedTrust(ctx, r)
	if err != nil {
		return nil, err
	}
	now, replaced, err := c.controller.SetTrust(ctx, requested)
	notDurable, err := durability(err)
	if err != nil {
		return nil, err
	}
	answer := &hdsdv1.SetTrustResponse{Trust: trustMessage(now), NotDurable: notDurable}
	if replaced != nil {
		answer.Replaced = trustMessage(*replaced)
	}
	return answer, nil
}

func requestedTrust(ctx context.Context, r *hdsdv1.SetTrustRequest) (t Trust, err error) {
	if t.Checker, err = checkerOf(r.GetChecker()); err != nil {
		return t, err
	}
	switch r.GetWord() {
	case hdsdv1.Trust_TRUSTED:
		t.Trusted = true
	case hdsdv1.Trust_DISTRUSTED:
	default:
		return t, status.Errorf(codes.InvalidArgument, "word: %s is neither DISTRUSTED nor TRUSTED", r.GetWord())
	}
	if t.Reason, err = reasonOf(r.GetReason()); err != nil {
		return t, err
	}
	t.Author, err = authorOf(ctx, r.GetAuthor())
	return t, err
}

// ClearTrust returns a checker to automatic trust.
func (c *Control) ClearTrust(ctx context.Context, r *hdsdv1.ClearTrustRequest) (*hdsdv1.ClearTrustResponse, error) {
	checker, err := checkerOf(r.GetChecker())
	if err != nil {
		return nil, err
	}
	author, err := authorOf(ctx, r.GetAuthor())
	if err != nil {
		return nil, err
	}
	ended, err := c.controller.ClearTrust(ctx, checker, author)
	notDurable, err := durability(err)
	if err != nil {
		return nil, err
	}
	answer := &hdsdv1.ClearTrustResponse{NotDurable: notDurable}
	if ended != nil {
		answer.Ended = trustMessage(*ended)
	}
	return answer, nil
}

// ListTrust returns the trust set for checkers.
func (c *Control) ListTrust(ctx context.Context, _ *hdsdv1.ListTrustRequest) (*hdsdv1.ListTrustResponse, error) {
	list, err := c.controller.Trust(ctx)
	if err != nil {
		return nil, grpcError(err)
	}
	return &hdsdv1.ListTrustResponse{Trust: convertList(list, trustMessage)}, nil
}

func checkerOf(id string) (string, error) {
	name, err := oneLine("checker", id, maxName)
	if err == nil && name == "" {
		err = status.Error(codes.InvalidArgument, "checker: is required: the node id, as hdsd checkers shows it")
	}
	return name, err
}

func trustMessage(t Trust) *hdsdv1.Trust {
	m := &hdsdv1.Trust{Checker: t.Checker, Word: hdsdv1.Trust_DISTRUSTED, Reason: t.Reason, Author: t.Author, Since: timeMessage(t.Since)}
	if t.Trusted {
		m.Word = hdsdv1.Trust_TRUSTED
	}
	return m
}

// shownZones returns nothing if no checker has a zone.
func shownZones(zones []health.ZoneVerdict) []health.ZoneVerdict {
	if len(zones) == 0 || len(zones) == 1 && zones[0].Region+zones[0].Zone == "" {
		return nil
	}
	return zones
}
