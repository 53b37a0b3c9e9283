package api

import (
	"context"
	"time"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// AuditPath is the REST path of the audit.
const AuditPath = "/v1/audit"

// AuditEntry is a change by an operator.
type AuditEntry struct {
	Time              time.Time
	Identity, Address string // of the caller, as far as verified
	Author            string // claimed by the caller, as is Reason
	Action, Target    string
	Version           string // of the cluster in Target; empty: the first, or all
	Before, After     string
	Reason            string
	Place             uint64 // in the order of the audit
}

// AuditQuery narrows a list of entries; zero fields do not.
type AuditQuery struct {
	Start, End  time.Time // Start is included, End is not
	NewestFirst bool
	After       uint64 // place of the previous page's last entry
	Limit       int
}

// ListAudit returns changes and their authors.
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
	answer := &hdsdv1.ListAuditResponse{Entries: convertList(entries, auditMessage)}
	if more {
		answer.NextPageToken, err = encodeToken(question, entries[len(entries)-1].Place)
	}
	return answer, grpcError(err)
}

func auditMessage(e AuditEntry) *hdsdv1.AuditEntry {
	return &hdsdv1.AuditEntry{
		Time: timeMessage(e.Time), Identity: e.Identity, Address: e.Address, Author: e.Author, Action: e.Action,
		Target: e.Target, Version: unlessEmpty(e.Version), Before: e.Before, After: e.After, Reason: e.Reason,
	}
}
