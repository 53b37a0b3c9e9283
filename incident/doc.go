// Package incident is pure: it groups recorded changes of health into incidents, which are
// what an operator would call one outage.
//
// An endpoint is down while its health is UNHEALTHY or TIMEOUT. The rule, for each endpoint
// that goes down:
//
//   - It belongs to the incident of its cluster, if an endpoint of this cluster changed within
//     that incident in the last minute.
//   - Otherwise it belongs to an incident of its zone that began in the last minute.
//   - Otherwise it begins an incident of its own.
//
// Its cause is where it happened, unless events near its beginning say more: a path to the
// zone was doubted, or the checkers that saw it begin were.
//
// An incident is over when no endpoint of it is down, and goes on if one goes down again by the
// first rule. So it keeps its beginning, and its id, for good.
package incident
