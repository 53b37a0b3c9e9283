// Package api answers questions about health and takes the changes that operators
// make: the hdsd.v1 services over gRPC and, by their HTTP annotations, over REST.
//
// It owns the shapes that programs outside see: messages and page tokens. internal/rest
// owns the errors. A Backend supplies the answers, and a Controller makes the changes.
// It guarantees:
//
//   - Page tokens are stable, and bound to the question that they continue. A token
//     used with another question is an error, not a wrong answer.
//
//   - A watch resumes behind the token of any event, without a gap.
//
//   - The protos define which parameters a URL may have, and the OpenAPI document,
//     served at /v1/openapi.json and .yaml.
//
//   - Queries wait for their turn in fair order; a few watchers are sent something at a
//     time. So what callers ask for leaves processors free for everything else.
//
//   - A client that does not read loses its watch, and its answers make room for others.
//
//   - A long answer is compressed for whoever accepts that, as a whole and before it is
//     sent: so there are as many compressors as queries that are worked at.
//
// It starts a goroutine for each watch over gRPC, for which Close waits.
package api
