package api

import (
	"context"
	"time"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// AuditPath is the REST path of the audit.
const AuditPath = "/v1/audit"

// AuditEntry is a change that somebody made.
type AuditEntry struct {
	Time              time.Time
	Identity, Address string // of the caller, as far as it was verified
	Author            string // by the caller's own word, as is Reason
	Action, Target    string
	Before, After     string
	Reason            string
	Place             uint64 // in the order of the audit
}

// AuditQuery narrows a list of entries; zero fields do not.
type AuditQuery struct {
	Start, End  time.Time // Start is included, End is not
	NewestFirst bool
	After       uint64 // the place of the last entry of the page before
	Limit       int
}

// ListAudit returns what was changed, and who did it.
func (c *Control) ListAudit(ctx context.Context, r *hdsdv1.ListAuditRequest) (*hdsdv1.ListAuditResponse, error) {
	limit, err := pageSize(r.GetPageSize())
	if err != nil {
		return nil, err
	}
	query := AuditQuery{NewestFirst: r.GetNewestFirst(), Limit: limit}
	if query.Start, query.End, err = period(r); err != nil {
		return nil, err
	}
	question := "audit"
	if query.NewestFirst {
		question = "audit newest first"
	}
	if r.GetPageToken() != "" {
		if err := decodeToken(question, r.GetPageToken(), &query.After); err != nil {
			return nil, grpcError(err)
		}
	}
	entries, more, err := c.controller.Audit(ctx, query)
	if err != nil {
		return nil, grpcError(err)
	}
	answer := &hdsdv1.ListAuditResponse{Entries: each(entries, auditMessage)}
	if more {
		answer.NextPageToken, err = encodeToken(question, entries[len(entries)-1].Place)
	}
	return answer, grpcError(err)
}

func auditMessage(e AuditEntry) *hdsdv1.AuditEntry {
	return &hdsdv1.AuditEntry{
		Time: timeMessage(e.Time), Identity: e.Identity, Address: e.Address, Author: e.Author, Action: e.Action,
		Target: e.Target, Before: e.Before, After: e.After, Reason: e.Reason,
	}
}
