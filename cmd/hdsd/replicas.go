package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

var replicasHeader = []string{"id", "self", "leader", "connected", "address", "version", "checkers", "data_planes", "position", "lag_millis", "since"}

// replicaColumns are those that fit on a line.
var replicaColumns = []string{"id", "leader", "connected", "checkers", "data_planes", "lag_millis", "since", "version"}

func newReplicas() *cobra.Command {
	var c client
	c.empty = emptyTable{rows: "replicas"}
	c.filter.noLocality = "replicas have no locality"
	command := &cobra.Command{
		Use:   "replicas",
		Short: "Show the replicas of the coordinator, and which one leads",
		Long: `replicas shows each coordinator of several that share what they decide: whether
it leads, how many checkers and data planes are connected to it, up to which
entry of the log it has published health, how far it is behind, and since when
it is there. Any replica answers all questions and takes all changes. -o json
is one object, as GET /v1/replicas has it.`,
		Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			p, err := c.printer(command, replicasHeader, replicaColumns...)
			if err != nil {
				return err
			}
			return c.ask(command, func(ctx context.Context, query hdsdv1.QueryClient) error {
				answer, err := query.ListReplicas(ctx, &hdsdv1.ListReplicasRequest{})
				if err != nil {
					return err
				}
				if c.output == "json" {
					return jsonPrinter{command.OutOrStdout()}.row(answer, nil)
				}
				err = printAll(p, c.limit, filtered(c.keepsReplica, func(string, int32) ([]*hdsdv1.Replica, string, error) {
					return answer.GetReplicas(), "", nil
				}), replicaCells)
				if err == nil && c.isTable() {
					say(command.ErrOrStderr(), "hdsd: %s\n", strings.Join(clauses(replicasText(answer), statusWidth-len("hdsd: ")), "\n      "))
				}
				return err
			})
		},
	}
	c.addFlags(command)
	command.AddCommand(newReplicasFound())
	return command
}

func replicaCells(r *hdsdv1.Replica) []string {
	cells := []string{
		r.GetId(), strconv.FormatBool(r.GetSelf()), strconv.FormatBool(r.GetLeader()), strconv.FormatBool(r.GetConnected()), r.GetAddress(), r.GetVersion(),
		number(r.GetCheckers()), number(r.GetDataPlanes()), strconv.FormatUint(r.GetPosition(), 10), number(r.GetLagMillis()), timeCell(r.GetSince()),
	}
	if !r.GetConnected() && !r.GetSelf() && r.GetPosition() == 0 { // it has not answered
		for i := slices.Index(replicasHeader, "checkers"); i <= slices.Index(replicasHeader, "lag_millis"); i++ {
			cells[i] = ""
		}
	}
	return cells
}

// keepsReplica reports whether the filter lets a replica pass.
func (c *client) keepsReplica(r *hdsdv1.Replica) bool {
	return !c.filter.unhealthy || !r.GetConnected()
}

// replicasText says what the list means.
func replicasText(answer *hdsdv1.ListReplicasResponse) string {
	all := answer.GetReplicas()
	if len(all) == 1 && all[0].GetAddress() == "" && answer.GetEpoch() == 0 {
		return "this coordinator is alone: while it is away, the last health stays; with 'replication' in its configuration, several share etcd"
	}
	self, leader := "", ""
	for _, r := range all {
		if r.GetSelf() {
			self = r.GetId()
		}
		if r.GetLeader() {
			leader = r.GetId()
		}
	}
	if leader == "" {
		return fmt.Sprintf("%s answers; NO LEADER: the last health stays, and checks go on; 'hdsd status' says why", self)
	}
	return fmt.Sprintf("%s answers; %s leads, epoch %d", self, leader, answer.GetEpoch())
}
