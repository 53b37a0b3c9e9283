package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// An override that decides more endpoints than both of these has to be confirmed.
const (
	confirmAbove = 20
	confirmShare = 0.1
)

// caution is how careful an operator wants to be.
type caution struct{ dryRun, yes bool }

func (c *caution) addTo(command *cobra.Command) {
	command.Flags().BoolVar(&c.dryRun, "dry-run", false, "change nothing, show what the override would decide")
	command.Flags().BoolVar(&c.yes, "yes", false, fmt.Sprintf("do not ask before an override that decides more than %d endpoints and %.0f %% of all", confirmAbove, 100*confirmShare))
}

// check shows what an override would do, or asks where it does much. It reports whether
// to go on.
func (c *caution) check(ctx context.Context, command *cobra.Command, control hdsdv1.ControlClient, request *hdsdv1.SetOverrideRequest) (bool, error) {
	preview, err := control.PreviewOverride(ctx, request)
	switch {
	case status.Code(err) == codes.Unimplemented && !c.dryRun:
		return true, nil // an older hdsd
	case err != nil && c.yes && !c.dryRun:
		return true, nil // SetOverride fails with a better error
	case err != nil:
		return false, err
	case c.dryRun:
		showPreview(command.OutOrStdout(), preview)
		return false, nil
	}
	tellPanics(command.ErrOrStderr(), "hdsd: ", preview.GetPanics())
	if c.yes {
		return true, nil
	}
	decides, total := preview.GetOverride().GetEndpoints(), preview.GetTotalEndpoints()
	if decides <= confirmAbove || float64(decides) <= confirmShare*float64(total) {
		return true, nil
	}
	question := fmt.Sprintf("the override would decide %d of %d endpoints", decides, total)
	if input, ok := command.InOrStdin().(*os.File); !ok || !term.IsTerminal(int(input.Fd())) {
		return false, errors.New(question + ": give --yes if that is what you want, or --dry-run to see it")
	}
	return confirmed(command.InOrStdin(), command.ErrOrStderr(), question)
}

func showPreview(w io.Writer, preview *hdsdv1.PreviewOverrideResponse) {
	say(w, "would decide %d of %d endpoints; nothing has changed\n", preview.GetOverride().GetEndpoints(), preview.GetTotalEndpoints())
	if replaced := preview.GetReplaced(); replaced != nil {
		say(w, "would replace: %s\n", overrideLine(replaced))
	}
	tellPanics(w, "", preview.GetPanics())
}

// mostPanics bounds the clusters with a warning of their own.
const mostPanics = 5

// tellPanics warns that Envoys would disregard an override. Each line begins with a prefix.
func tellPanics(w io.Writer, prefix string, panics []string) {
	for i, text := range panics {
		if i == mostPanics {
			say(w, "%sand so for %d more clusters\n", prefix, len(panics)-i)
			break
		}
		say(w, "%s%s\n", prefix, text)
	}
	if len(panics) > 0 {
		say(w, "%sthe cluster's healthy_panic_threshold says when: with 0, Envoy never does that\n", prefix)
	}
}

// confirmed asks a person.
func confirmed(r io.Reader, w io.Writer, question string) (bool, error) {
	say(w, "%s. Go on? [y/N] ", question)
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	}
	return false, errors.New("not confirmed: nothing has changed")
}
