// Package tally is pure: it counts what is down, by cluster and by zone.
//
// Its owner sets clusters as a whole, and single endpoints that change. The cost is that of
// the change: nothing looks at all endpoints. Take returns which clusters and zones went down
// as a whole since it was last called, and which are back, and the conditions that operators
// want to be notified of.
//
// Panics does the same for clusters whose published health Envoys disregard.
//
// Of the endpoints that are down, at most EachCluster of a cluster and EachFleet of all are
// conditions of their own. The others of a cluster are one condition together.
package tally
