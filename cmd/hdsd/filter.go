package main

import (
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// filter narrows a list. It refuses flags that the list does not support.
type filter struct {
	unhealthy bool
	locality  string
	parsed    *corev3.Locality // parsed locality, once checked
	checker   string           // a node id

	noUnhealthy, noLocality string // reason why a list does not support it; empty if it does
}

func (f *filter) addTo(command *cobra.Command) {
	command.Flags().BoolVar(&f.unhealthy, "unhealthy", false, "only what is not well: endpoints that are neither HEALTHY nor DEGRADED, and what belongs to them")
	command.Flags().StringVar(&f.locality, "locality", "", "only in this `REGION[/ZONE[/SUB-ZONE]]`; parts may be empty: /b is zone b of any region")
	completeWords(command, "locality")
}

// addChecker adds --checker, for lists with the views of checkers.
func (f *filter) addChecker(command *cobra.Command, subject string) {
	command.Flags().StringVar(&f.checker, "checker", "", "only "+subject+" of the checker with this node `ID`")
	completeWords(command, "checker")
}

// hasVote reports whether the requested checker is among the voters, or none is requested.
func (f *filter) hasVote(votes []*hdsdv1.Observation) bool {
	return f.checker == "" || slices.ContainsFunc(votes, func(o *hdsdv1.Observation) bool { return o.GetChecker() == f.checker })
}

// check refuses flags that the list does not support.
func (f *filter) check() error {
	switch {
	case f.unhealthy && f.noUnhealthy != "":
		return usageError{fmt.Errorf("--unhealthy: %s", f.noUnhealthy)}
	case f.locality != "" && f.noLocality != "":
		return usageError{fmt.Errorf("--locality %s: %s", f.locality, f.noLocality)}
	}
	scope := scope{f.locality}
	var err error
	f.parsed, err = scope.parse()
	return err
}

// matches reports whether a locality passes.
func (f *filter) matches(l *corev3.Locality) bool {
	part := func(want, actual string) bool { return want == "" || want == actual }
	return part(f.parsed.GetRegion(), l.GetRegion()) && part(f.parsed.GetZone(), l.GetZone()) && part(f.parsed.GetSubZone(), l.GetSubZone())
}

// hasZone reports whether one of some zones passes. Their regions are not known.
func (f *filter) hasZone(zones []string) bool {
	if zone := f.parsed.GetZone(); zone != "" {
		return slices.Contains(zones, zone)
	}
	return strings.Trim(f.locality, "/") == "" || len(zones) > 0
}

// filtered narrows a list that the coordinator does not narrow.
func filtered[Item proto.Message](keep func(Item) bool, list lister[Item]) lister[Item] {
	return func(token string, size int32) ([]Item, string, error) {
		items, next, err := list(token, size)
		return slices.DeleteFunc(items, func(i Item) bool { return !keep(i) }), next, err
	}
}
