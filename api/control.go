package api

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

// Bounds of what operators say, in bytes.
const (
	maxReason = 1000
	maxAuthor = 200
)

// Controller does what operators ask for.
type Controller interface {
	// Freeze keeps verdicts from the subscribers. It gives the freeze in force,
	// and the one that it replaces, nil where there was none. It has taken
	// effect even where the error is that it is not on disk yet.
	Freeze(ctx context.Context, f Freeze) (now Freeze, replaced *Freeze, err error)

	// Unfreeze publishes verdicts again. It gives the freeze that ended, nil
	// where there was none.
	Unfreeze(ctx context.Context, author string) (*Freeze, error)

	// Frozen gives the freeze in force, nil where there is none, at once.
	Frozen() *Freeze

	// SetOverride puts a health above the votes. It gives the override in force,
	// and the one that it replaces, nil where there was none. It has taken
	// effect even where the error is that it is not on disk yet.
	SetOverride(ctx context.Context, o Override) (now Override, replaced *Override, err error)

	// ClearOverrides ends the override for exactly a scope, or all within it, and
	// gives those that ended.
	ClearOverrides(ctx context.Context, scope health.Endpoint, all bool, author string) ([]Override, error)

	// Overrides gives those in force, by scope.
	Overrides(ctx context.Context) ([]Override, error)

	// SetTrust says whether to believe a checker. It gives what is in force, and
	// what that replaces, nil where nothing was said. It has taken effect even
	// where the error is that it is not on disk yet.
	SetTrust(ctx context.Context, t Trust) (now Trust, replaced *Trust, err error)

	// ClearTrust leaves a checker to be judged again, and gives what ended, nil
	// where nothing was said.
	ClearTrust(ctx context.Context, checker, author string) (*Trust, error)

	// Trust gives what is said of checkers, by id.
	Trust(ctx context.Context) ([]Trust, error)

	// Clock tells whether the clock of the machine is doubted, at once.
	Clock() Clock

	// ConfirmClock says that the clock is right, and gives what was made of it
	// before.
	ConfirmClock(ctx context.Context, author string) (before Clock, err error)

	// Backup makes a copy of the database as it is, one at a time.
	Backup(ctx context.Context) (Copy, error)
}

// Freeze is why and how verdicts are kept from the subscribers.
type Freeze struct {
	Reason, Author string
	Since          time.Time
	Hold           bool // publish the health as it stood; else what the sources say
}

// String tells of a freeze on one line.
func (f *Freeze) String() string {
	return fmt.Sprintf("frozen since %s by %s: %s", f.Since.UTC().Format(time.RFC3339), f.Author, f.Reason)
}

// Control is the hdsd.v1 control service on top of a Controller.
type Control struct {
	hdsdv1.UnimplementedControlServer
	controller Controller
}

// NewControl gives a service that has controller do what is asked.
func NewControl(controller Controller) *Control { return &Control{controller: controller} }

// Register puts the service on a gRPC server.
func (c *Control) Register(server grpc.ServiceRegistrar) { hdsdv1.RegisterControlServer(server, c) }

// Freeze keeps verdicts from the subscribers.
func (c *Control) Freeze(ctx context.Context, r *hdsdv1.FreezeRequest) (*hdsdv1.FreezeResponse, error) {
	reason, err := reasonOf(r.GetReason())
	if err != nil {
		return nil, err
	}
	author, err := authorOf(r.GetAuthor())
	if err != nil {
		return nil, err
	}
	if _, ok := hdsdv1.FreezeState_Publish_name[int32(r.GetPublish())]; !ok {
		return nil, status.Errorf(codes.InvalidArgument, "publish: %d is neither SOURCES nor HELD", r.GetPublish())
	}
	now, replaced, err := c.controller.Freeze(ctx, Freeze{Reason: reason, Author: author, Hold: r.GetPublish() == hdsdv1.FreezeState_HELD})
	if err != nil {
		return nil, grpcError(err)
	}
	answer := &hdsdv1.FreezeResponse{Freeze: freezeMessage(&now)}
	if replaced != nil {
		answer.Replaced = freezeMessage(replaced)
	}
	return answer, nil
}

// Unfreeze publishes verdicts again.
func (c *Control) Unfreeze(ctx context.Context, r *hdsdv1.UnfreezeRequest) (*hdsdv1.UnfreezeResponse, error) {
	author, err := authorOf(r.GetAuthor())
	if err != nil {
		return nil, err
	}
	ended, err := c.controller.Unfreeze(ctx, author)
	if err != nil {
		return nil, grpcError(err)
	}
	answer := &hdsdv1.UnfreezeResponse{}
	if ended != nil {
		answer.Ended = freezeMessage(ended)
	}
	return answer, nil
}

// GetFreeze tells whether hdsd is frozen.
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
		err = status.Error(codes.InvalidArgument, "reason: is needed: say why, for everyone who wonders")
	}
	return reason, err
}

func authorOf(text string) (string, error) {
	author, err := oneLine("author", text, maxAuthor)
	return cmp.Or(author, "unknown"), err
}

// oneLine takes text that is shown in logs and on terminals.
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
