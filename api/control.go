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
	"hdsd/internal/caller"
)

// Size limits of operators' texts, in bytes.
const (
	maxReason = 1000
	maxAuthor = 200
)

// Controller makes the changes that operators ask for.
type Controller interface {
	// Freeze stops publishing verdicts. It returns the freeze in force and the one that
	// it replaces, or nil. With the error NotDurable it has taken effect all the same,
	// as with the other changes.
	Freeze(ctx context.Context, f Freeze) (now Freeze, replaced *Freeze, err error)

	// Unfreeze publishes verdicts again. It returns the freeze that ended, or nil.
	Unfreeze(ctx context.Context, author string) (*Freeze, error)

	// Frozen returns the freeze in force, or nil, without waiting.
	Frozen() *Freeze

	// SetOverride sets a health in place of verdicts. It returns the override in force
	// and the one that it replaces, or nil.
	SetOverride(ctx context.Context, o Override) (now Override, replaced *Override, err error)

	// PreviewOverride returns the effect that SetOverride would have. It changes nothing.
	PreviewOverride(ctx context.Context, o Override) (Preview, error)

	// ClearOverrides ends the override of exactly a scope, or all within it, and
	// returns those that ended.
	ClearOverrides(ctx context.Context, scope health.Endpoint, all bool, author string) ([]Override, error)

	// Overrides returns the overrides in force, by scope.
	Overrides(ctx context.Context) ([]Override, error)

	// SetTrust decides whether to believe a checker. It returns the trust in force and
	// the one that it replaces, or nil.
	SetTrust(ctx context.Context, t Trust) (now Trust, replaced *Trust, err error)

	// ClearTrust returns a checker to automatic trust, and returns the trust that
	// ended, or nil.
	ClearTrust(ctx context.Context, checker, author string) (*Trust, error)

	// Trust returns the trust set for checkers, by id.
	Trust(ctx context.Context) ([]Trust, error)

	// Sources returns the sources of clusters, in the order of their precedence.
	Sources() []Source

	// AcceptSource follows a source in what is held of it. It returns what was held, and
	// the source after that.
	AcceptSource(ctx context.Context, a SourceAcceptance) (accepted Held, now Source, err error)

	// Receivers returns who is notified of what is wrong, without waiting.
	Receivers() []Receiver

	// NotifyTest sends a marked notification to a receiver, and returns whether that took
	// it, and what it answered or why it could not be reached.
	NotifyTest(ctx context.Context, name, author string) (ok bool, answer string, err error)

	// Clock returns whether the machine's clock is doubted, without waiting.
	Clock() Clock

	// ConfirmClock confirms that the clock is right, and returns its previous state.
	ConfirmClock(ctx context.Context, author string) (before Clock, err error)

	// Audit returns up to query.Limit entries that are on disk, and whether there are
	// more.
	Audit(ctx context.Context, query AuditQuery) ([]AuditEntry, bool, error)

	// Annotate puts a note among the events, and returns it.
	Annotate(ctx context.Context, note RecordedEvent) (RecordedEvent, error)

	// Backup makes a consistent copy of the database, one at a time.
	Backup(ctx context.Context) (Copy, error)
}

// NotDurable is the error of a change that is in force, but that the disk does not take.
type NotDurable struct{ Why string }

// Error returns why.
func (n *NotDurable) Error() string { return n.Why }

// durability divides the error of a change: why it is not durable, and why it was not made.
func durability(err error) (notDurable *string, failed error) {
	if in, ok := errors.AsType[*NotDurable](err); ok {
		return &in.Why, nil
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

// authorOf returns who makes a change by the caller's own word or, if it says nothing, its
// verified identity.
func authorOf(ctx context.Context, text string) (string, error) {
	author, err := oneLine("author", text, maxAuthor)
	return cmp.Or(author, caller.FromContext(ctx).Identity, "unknown"), err
}

// oneLine checks text that logs and terminals show.
func oneLine(field, text string, most int) (string, error) {
	text = strings.TrimSpace(text)
	if len(text) > most {
		return "", status.Errorf(codes.InvalidArgument, "%s: is longer than %d bytes", field, most)
	}
	if at := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) }); at >= 0 {
		return "", status.Errorf(codes.InvalidArgument, "%s: has a character at byte %d that cannot be shown: write one line of plain text", field, at)
	}
	return text, nil
}
