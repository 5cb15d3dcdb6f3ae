package conformance

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"

	"github.com/weir-edge/weir/impl/testkit"
)

const (
	keys   = "it is about keys of etcd, as of lists below an object's key, that no path of the REST API stands for"
	broken = "it breaks what is stored, by a transformer; a relay is fed with objects that could be read"
)

// noCalls stands where the store's own tests count reads of etcd.
func noCalls(*testing.T, uint64, uint64) {}

// suite is all of Kubernetes' tests of storage.
var suite = map[string]judged{
	"RunTestGet":                  reads(storagetesting.RunTestGet),
	"RunTestListPaging":           reads(storagetesting.RunTestListPaging),
	"RunTestNamespaceScopedList":  reads(storagetesting.RunTestNamespaceScopedList),
	"RunTestWatch":                reads(storagetesting.RunTestWatch),
	"RunTestDeleteTriggerWatch":   reads(storagetesting.RunTestDeleteTriggerWatch),
	"RunTestWatchFromNonZero":     reads(storagetesting.RunTestWatchFromNonZero),
	"RunTestDelayedWatchDelivery": reads(storagetesting.RunTestDelayedWatchDelivery),
	"RunTestWatcherTimeout":       reads(storagetesting.RunTestWatcherTimeout),
	"RunTestWatchDeleteEventObjectHaveLatestRV": reads(
		storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
	"RunTestNamespaceScopedWatch": reads(storagetesting.RunTestNamespaceScopedWatch),
	"RunTestOptionalWatchBookmarksWithCorrectResourceVersion": reads(
		storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion),
	"RunSendInitialEventsBackwardCompatibility": reads(
		storagetesting.RunSendInitialEventsBackwardCompatibility),
	"RunWatchSemantics":                     reads(storagetesting.RunWatchSemantics),
	"RunWatchSemanticInitialEventsExtended": reads(storagetesting.RunWatchSemanticInitialEventsExtended),
	"RunWatchListMatchSingle":               reads(storagetesting.RunWatchListMatchSingle),
	"RunTestUnconditionalDelete":            reads(storagetesting.RunTestUnconditionalDelete),
	"RunTestConditionalDelete":              reads(storagetesting.RunTestConditionalDelete),
	"RunTestCreateWithTTL":                  reads(storagetesting.RunTestCreateWithTTL),
	"RunTestCreateWithKeyExist":             reads(storagetesting.RunTestCreateWithKeyExist),
	"RunTestDeleteWithSuggestion":           reads(storagetesting.RunTestDeleteWithSuggestion),
	"RunTestDeleteWithSuggestionAndConflict": reads(
		storagetesting.RunTestDeleteWithSuggestionAndConflict),
	"RunTestDeleteWithSuggestionOfDeletedObject": reads(
		storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
	"RunTestDeleteWithConflict":             reads(storagetesting.RunTestDeleteWithConflict),
	"RunTestValidateDeletionWithSuggestion": reads(storagetesting.RunTestValidateDeletionWithSuggestion),
	"RunTestValidateDeletionWithOnlySuggestionValid": reads(
		storagetesting.RunTestValidateDeletionWithOnlySuggestionValid),
	"RunTestPreconditionalDeleteWithSuggestion": reads(
		storagetesting.RunTestPreconditionalDeleteWithSuggestion),
	"RunTestPreconditionalDeleteWithOnlySuggestionPass": reads(
		storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass),
	"RunTestGuaranteedUpdateWithTTL":      reads(storagetesting.RunTestGuaranteedUpdateWithTTL),
	"RunTestGuaranteedUpdateWithConflict": reads(storagetesting.RunTestGuaranteedUpdateWithConflict),
	"RunTestGuaranteedUpdateWithSuggestionAndConflict": reads(
		storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
	"RunTestCreate": {run: func(ctx context.Context, t *testing.T, s *relayStore) {
		storagetesting.RunTestCreate(ctx, t, s, func(context.Context, *testing.T, string) {})
	}},
	"RunTestList": {forgetful: true, consistent: true, run: func(ctx context.Context, t *testing.T, s *relayStore) {
		storagetesting.RunTestList(ctx, t, s, s.compact, true, s.recorder)
	}},
	"RunTestConsistentList": {consistent: true, run: func(ctx context.Context, t *testing.T, s *relayStore) {
		storagetesting.RunTestConsistentList(ctx, t, s, s.increase, true, true, true)
	}},
	"RunTestGetListNonRecursive": {run: func(ctx context.Context, t *testing.T, s *relayStore) {
		storagetesting.RunTestGetListNonRecursive(ctx, t, s.increase, s)
	}},
	"RunTestListContinuation": {run: func(ctx context.Context, t *testing.T, s *relayStore) {
		storagetesting.RunTestListContinuation(ctx, t, s, noCalls)
	}},
	"RunTestListPaginationRareObject": {run: func(ctx context.Context, t *testing.T, s *relayStore) {
		storagetesting.RunTestListPaginationRareObject(ctx, t, s, noCalls)
	}},
	"RunTestListContinuationWithFilter": {run: func(ctx context.Context, t *testing.T, s *relayStore) {
		storagetesting.RunTestListContinuationWithFilter(ctx, t, s, noCalls)
	}},
	"RunTestWatchFromZero": {forgetful: true, run: func(ctx context.Context, t *testing.T, s *relayStore) {
		storagetesting.RunTestWatchFromZero(ctx, t, s, s.compact)
	}},
	"RunTestClusterScopedWatch": {global: true, run: func(ctx context.Context, t *testing.T, s *relayStore) {
		storagetesting.RunTestClusterScopedWatch(ctx, t, s)
	}},
	"RunTestWatchDispatchBookmarkEvents": {run: func(ctx context.Context, t *testing.T, s *relayStore) {
		storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, s, true)
	}},
	"RunTestListResourceVersionMatch":                                     {not: broken},
	"RunTestGuaranteedUpdate":                                             {not: broken},
	"RunTestGuaranteedUpdateChecksStoredData":                             {not: broken},
	"RunTestTransformationFailure":                                        {not: broken},
	"RunTestWatchError":                                                   {not: broken},
	"RunWatchErrorIsBlockingFurtherEvents":                                {not: broken},
	"RunTestWatchWithUnsafeDelete":                                        {not: broken},
	"RunTestGetListWithErrorAggregation":                                  {not: broken},
	"RunTestGetListWithoutErrorAggregation":                               {not: broken},
	"RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError":   {not: broken},
	"RunTestDeleteExpectedTransformOrDecodeError":                         {not: broken},
	"RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError": {not: broken},
	"RunTestWatchInitializationSignal": {
		not: "it waits for a signal inside the process, to kube-apiserver's priority and fairness; a relay has no such queue",
	},
	"RunTestKeySchema":              {not: keys},
	"RunTestGetListRecursivePrefix": {not: keys},
	"RunTestWatchContextCancel": {
		not: "it watches with a context that has ended, and wants no error; a client over HTTP has one",
	},
	"RunTestCompactRevision": {
		not: "it asks for the revision that etcd has compacted; a relay knows of none",
	},
	"RunOptionalTestProgressNotify": {
		not: "it wants bookmarks without asking for bookmarks, as kube-apiserver does of etcd; nobody can over HTTP",
	},
	"RunTestListInconsistentContinuation": {
		not: "it lists with resourceVersion 0 and a limit, that a watch cache ignores, and a relay as well",
	},
	"RunTestStats": {
		not: "it counts what etcd stores; a relay has metrics of its own",
	},
}

// increase writes something else to etcd.
func (s *relayStore) increase(ctx context.Context, t *testing.T) int64 {
	t.Helper()
	resp, err := s.etcd.Put(ctx, "something-else", "ok")
	if err != nil {
		t.Fatal(err)
	}
	return resp.Header.Revision
}

// compact is done at etcd, and at the relay, which keeps changes for a time: it grows old enough to have forgotten this
// one.
func (s *relayStore) compact(ctx context.Context, t *testing.T, version string) {
	t.Helper()
	rv, err := storage.APIObjectVersioner{}.ParseResourceVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.etcd.KV.Compact(ctx, int64(rv), clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	s.increase(ctx, t) // as etcd3.Compact does, which notes how far it came
	at, ok := s.when.Load(rv)
	if !ok {
		t.Fatalf("the relay knows no change of version %d", rv)
	}
	s.clock.ahead.Add(int64(at.(time.Time).Add(ringAge + apart/2).Sub(s.clock.Now())))
	testkit.Until(t, time.Minute, "the relay to forget what is old", func() bool { return !s.relay.Resumable(rv - 1) })
}
