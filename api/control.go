package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/peer"
	"hdsd/peer/access"
)

// Size limits of operators' texts, in bytes.
const (
	maxReason = 1000
	maxAuthor = 200
)

// Controller makes the changes of operators.
type Controller interface {
	// Clusters returns the clusters that the caller may change, with all their versions.
	Clusters(ctx context.Context) access.Clusters

	// Freeze stops publishing verdicts. It returns the freeze in force and the replaced one, or
	// nil. With the error NotDurable it is in force all the same, as are the other changes.
	Freeze(ctx context.Context, f Freeze) (now Freeze, replaced *Freeze, err error)

	// Unfreeze resumes publishing. It returns the ended freeze, or nil.
	Unfreeze(ctx context.Context, author string) (*Freeze, error)

	// Frozen returns the freeze in force, or nil, without waiting.
	Frozen() *Freeze

	// SetOverride sets a health in place of verdicts. It returns the override in force and the
	// replaced one, or nil.
	SetOverride(ctx context.Context, o Override) (now Override, replaced *Override, err error)

	// PreviewOverride returns the effect that SetOverride would have. It changes nothing.
	PreviewOverride(ctx context.Context, o Override) (Preview, error)

	// ClearOverrides ends the override of exactly a scope or, if nested, all within it, and
	// returns the ended ones.
	ClearOverrides(ctx context.Context, scope health.Endpoint, nested bool, author string) ([]Override, error)

	// Overrides returns the overrides in force, by scope.
	Overrides(ctx context.Context) ([]Override, error)

	// SetTrust sets whether a checker is believed. It returns the trust in force and the
	// replaced one, or nil.
	SetTrust(ctx context.Context, t Trust) (now Trust, replaced *Trust, err error)

	// ClearTrust returns a checker to automatic trust, and returns the ended trust, or nil.
	ClearTrust(ctx context.Context, checker, author string) (*Trust, error)

	// Trust returns the trust set for checkers, by id.
	Trust(ctx context.Context) ([]Trust, error)

	// Sources returns the sources of clusters, in the order of their precedence.
	Sources() []Source

	// AcceptSource accepts the held loss of a source. It returns the loss, and the source after
	// that.
	AcceptSource(ctx context.Context, a SourceAcceptance) (accepted Held, now Source, err error)

	// Receivers returns the receivers of notifications, without waiting.
	Receivers() []Receiver

	// NotifyTest sends a marked notification to a receiver, and returns whether it succeeded,
	// and the answer or the reason.
	NotifyTest(ctx context.Context, name, author string) (ok bool, answer string, err error)

	// Clock returns whether the machine's clock is doubted, without waiting.
	Clock() Clock

	// ConfirmClock confirms that the clock is right, and returns its previous state.
	ConfirmClock(ctx context.Context, author string) (before Clock, err error)

	// Audit returns up to query.Limit entries on disk, and whether more follow.
	Audit(ctx context.Context, query AuditQuery) ([]AuditEntry, bool, error)

	// Annotate adds a note to the events, and returns it.
	Annotate(ctx context.Context, note RecordedEvent) (RecordedEvent, error)

	// Backup makes a consistent copy of the database, one at a time.
	Backup(ctx context.Context) (Copy, error)
}

// NotDurable is the error of a change that is in force, but not on disk.
type NotDurable struct{ Reason string }

// Error returns the reason.
func (n *NotDurable) Error() string { return n.Reason }

// durability divides the error of a change into the reason why it is not durable, and the reason
// why it was not made.
func durability(err error) (notDurable *string, failed error) {
	if inForce, ok := errors.AsType[*NotDurable](err); ok {
		return &inForce.Reason, nil
	}
	return nil, grpcError(err)
}

// Freeze is an operator's stop to publishing verdicts.
type Freeze struct {
	Reason, Author string
	Since          time.Time
	Hold           bool // publish the health at the time of the freeze; else the sources' health
}

// String describes a freeze on one line.
func (f *Freeze) String() string {
	return fmt.Sprintf("frozen since %s by %s: %s", f.Since.UTC().Format(time.RFC3339), f.Author, f.Reason)
}

// Control is the hdsd.v1 control service on top of a Controller.
type Control struct {
	hdsdv1.UnimplementedControlServer
	controller Controller
}

// NewControl returns a service on top of controller.
func NewControl(controller Controller) *Control { return &Control{controller: controller} }

// Register registers the service with a gRPC server.
func (c *Control) Register(server grpc.ServiceRegistrar) { hdsdv1.RegisterControlServer(server, c) }

// Freeze stops publishing verdicts.
func (c *Control) Freeze(ctx context.Context, r *hdsdv1.FreezeRequest) (*hdsdv1.FreezeResponse, error) {
	reason, err := reasonOf(r.GetReason())
	if err != nil {
		return nil, err
	}
	author, err := authorOf(ctx, r.GetAuthor())
	if err != nil {
		return nil, err
	}
	if _, ok := hdsdv1.FreezeState_Publish_name[int32(r.GetPublish())]; !ok {
		return nil, status.Errorf(codes.InvalidArgument, "publish: %d is neither SOURCES nor HELD", r.GetPublish())
	}
	now, replaced, err := c.controller.Freeze(ctx, Freeze{Reason: reason, Author: author, Hold: r.GetPublish() == hdsdv1.FreezeState_HELD})
	notDurable, err := durability(err)
	if err != nil {
		return nil, err
	}
	answer := &hdsdv1.FreezeResponse{Freeze: freezeMessage(&now), NotDurable: notDurable}
	if replaced != nil {
		answer.Replaced = freezeMessage(replaced)
	}
	return answer, nil
}

// Unfreeze publishes verdicts again.
func (c *Control) Unfreeze(ctx context.Context, r *hdsdv1.UnfreezeRequest) (*hdsdv1.UnfreezeResponse, error) {
	author, err := authorOf(ctx, r.GetAuthor())
	if err != nil {
		return nil, err
	}
	ended, err := c.controller.Unfreeze(ctx, author)
	notDurable, err := durability(err)
	if err != nil {
		return nil, err
	}
	answer := &hdsdv1.UnfreezeResponse{NotDurable: notDurable}
	if ended != nil {
		answer.Ended = freezeMessage(ended)
	}
	return answer, nil
}

// GetFreeze returns whether hdsd is frozen.
func (c *Control) GetFreeze(context.Context, *hdsdv1.GetFreezeRequest) (*hdsdv1.FreezeState, error) {
	return freezeMessage(c.controller.Frozen()), nil
}

func freezeMessage(f *Freeze) *hdsdv1.FreezeState {
	if f == nil {
		return &hdsdv1.FreezeState{}
	}
	m := &hdsdv1.FreezeState{Frozen: true, Reason: f.Reason, Author: f.Author, Since: timeMessage(f.Since)}
	if f.Hold {
		m.Publish = hdsdv1.FreezeState_HELD
	}
	return m
}

func reasonOf(text string) (string, error) {
	reason, err := oneLine("reason", text, maxReason)
	if err == nil && reason == "" {
		err = status.Error(codes.InvalidArgument, "reason: is required: say why, for other operators")
	}
	return reason, err
}

// authorOf returns the claimed author of a change or, without a claim, the verified identity.
func authorOf(ctx context.Context, text string) (string, error) {
	author, err := oneLine("author", text, maxAuthor)
	return cmp.Or(author, peer.FromContext(ctx).Identity, "unknown"), err
}

// oneLine checks text for logs and terminals.
func oneLine(field, text string, limit int) (string, error) {
	text = strings.TrimSpace(text)
	if len(text) > limit {
		return "", status.Errorf(codes.InvalidArgument, "%s: is longer than %d bytes", field, limit)
	}
	if index := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) }); index >= 0 {
		return "", status.Errorf(codes.InvalidArgument, "%s: has a character at byte %d that cannot be shown: write one line of plain text", field, index)
	}
	return text, nil
}
