// Package tally is pure: it counts endpoints that are down, by cluster and by zone.
//
// Its owner sets clusters as a whole, and single changed endpoints. The cost is that of the
// change: nothing looks at all endpoints. Take returns the clusters and zones that went down as
// a whole since its last call, those that are back, and the conditions for operators'
// notifications.
//
// Panics does the same for clusters whose published health Envoys disregard.
//
// Of the endpoints that are down, at most EachCluster of a cluster and EachFleet of all are
// conditions of their own. The others of a cluster are one condition together.
package tally
