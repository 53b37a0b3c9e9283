// Package assign decides which checkers check which endpoints.
//
// It owns the plan: for each endpoint the checkers that have a seat at it. A
// Planner takes changes of the endpoints and of the fleet and answers with
// what changes in the plan, and nothing else changes. It is pure: no clock, no
// goroutine, no lock, no log; one goroutine at a time may call it. It imports
// health and the standard library only.
//
// # What is promised
//
// In order of weight, for each endpoint:
//
//  1. only checkers that have the abilities it needs and reach it, are where its
//     placement allows, and are below their ceilings;
//  2. as many checkers as its redundancy asks for, or as many as there are;
//  3. placed as its Zones and Regions say: by default in distinct zones (region
//     and zone) as far as there are zones;
//  4. and one of them in the endpoint's own zone, where that has one;
//  5. no checker with much more than its fair share (Options.Slack), which is what it
//     has where loads are as even for their weights as 1 to 4 allow.
//
// A plan only changes where one of these asks for it: a checker that leaves
// moves its own checks and no other, one that joins takes at most its fair
// share, one that returns to its seat moves nothing (at ceilings, what was parted
// for a substitute may find a better place). Only where a change would
// leave a checker with 1.15 times the slack above its share, it sheds the excess.
// The same history of changes gives the same plan and the same digest on every
// machine, and the order inside a Change never matters.
//
// What does not fit is never dropped in silence: a Diff tells of endpoints that
// nobody checks, Shortage of any endpoint how many checkers it lacks, and why.
// Where ceilings leave too little room, second and third checkers are what is
// missing first, and all is made up for as soon as there is room.
//
// # Seats
//
// A checker that is Lost keeps its seat: its checks stay its own. Endpoints
// that this leaves with fewer than two live checkers (one, where the
// redundancy is one) get a substitute at once, which is taken away when the
// lost one joins again. Leave gives a seat up: substitutes become permanent
// and what is still missing is filled in.
//
// A checker that is Doubted keeps its seat as well, and each of its endpoints
// gets a substitute, as if the redundancy was one more there. A substitute is in
// a zone of which no live checker is, the endpoint's own only where there is
// room; it makes room for seats where ceilings leave none, and it is what a
// checker sheds first. Substitutes are no part of the stored plan. One that is Blind
// keeps its seat, too, and gets no other but what nobody else can have; an endpoint at which others that are live are
// no more than the blind gets as many substitutes as it takes.
//
// # After a start
//
// Restore gives the seats of the stored plan to checkers that are not live
// yet. Then:
//
//	p.Restore(plan)
//	p.Apply(Change{Settling: true, Upsert: endpoints})     // stored seats are taken up
//	p.Apply(Change{Settling: true, Join: one that is back}) // as they come
//	p.Apply(Change{Leave: those that never came})          // the end of settling
//
// While Settling nothing is placed, so that the first checker back does not
// get everything, and an endpoint that no seat was stored for waits. The first
// Apply without it places all that waited as one batch: a first start ends in
// the same plan in whatever order the checkers came. Endpoints that are
// upserted later still find their stored seats.
//
// # How it works
//
// Endpoints that want the same (class, redundancy, rate, placement) are of one
// kind. A binary trie over (hash of cluster, hash of endpoint) cuts each kind into
// leaves, so that small clusters share a leaf and large ones split. The endpoints
// of a leaf that are in one zone are a unit, at most about a twelfth of the mean
// load (and Options.Unit); all endpoints of a unit share one list of seats. The
// units of a leaf rank zones and checkers alike: so a cluster whose endpoints are
// in all zones has one checker in each, and few more.
// A split leaves both halves where they were, and so moves nothing; so does a
// join of two that have the same seats.
//
// The zones of a unit are ranked by weighted rendezvous hashing (highest
// random weight: Thaler and Ravishankar, "Using name-based mappings to
// increase hit rates", 1998), the own zone first; in a zone the highest ranking
// checker with room takes the seat. Room is bounded as in consistent hashing
// with bounded loads (Mirrokni, Thorup and Zadimoghaddam, 2016): a share, and the
// slack on top. Where no one has room the least loaded is taken. Scarce abilities are
// placed first. Newcomers pull the units that they win by the same ranking, among
// the leaves that rank them high, then from those above their share, up to their
// own share. Where much joins at once
// (a zone comes back) the plan made from scratch is taken instead if it moves
// hardly more than their share. A checker that has grown past its bound sheds what
// it ranks lowest for, to those with room; if all who could take it are full, along a
// shortest chain of checkers to one that is not, each handing on something of its
// own. Units that are too large for that are cut in two.
//
// Shares are found for cohorts, the checkers of a zone that are alike in what they can
// do and take. What is asked of a class fills its cohorts up to one level, as far as rules 3
// and 4 allow, over what is asked of other classes; class by class, and again, until
// nothing changes. A cohort that has more than its ceilings allow counts as one that weighs
// less.
//
// A checker's ceiling bounds what its units cost, the sum of their endpoints'
// checks a second. A unit that fits nowhere has
// others leave for it, those that more checkers may serve; then it is
// cut in two, and its parts are placed. How much room the roomiest checker of a
// zone has is remembered, so that what fits nowhere costs little; and how long is
// looked for others to leave is bounded (Options.Looks).
//
// Each leaf remembers in what order it likes zones, and who ranks highest in each:
// mostly one of these few has room, and nobody else needs to be asked.
//
// Zones, regions, kinds and cohorts are numbered, and forgotten when nobody is there
// any more, so that no cost grows with the names that were ever used.
//
// Node ids are hashed (SHA-256), never numbered, so a plan made from scratch
// resembles the one that grew.
//
// # Costs
//
// With E endpoints, C checkers, Z zones, redundancy R and L leaves (some 5 to 20
// times C/R): from scratch O(E log E + L*C); a checker that leaves O(C + its
// checks + its leaves*C/Z); one that is lost O(C + its units*R), one that is
// doubted as much as one that leaves; one that joins
// O(L + C + its checks); an endpoint O(C + its leaf + leaves of its kind). Shares
// are found anew each time: some 20 steps for each pair of kind and cohort, and where
// there are several kinds or ceilings, for each of some 3 to 24 rounds.
package assign
