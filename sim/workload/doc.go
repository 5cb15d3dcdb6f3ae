// Package workload writes what a busy cluster's controllers write: Services with EndpointSlices and Endpoints, and
// then a stream of changes of their endpoints.
//
//	w := workload.New(workload.Config{Seed: 1, Services: 40, Endpoints: 100, Nodes: nodes})
//	client, err := workload.NewClient(site.Admin())
//	err = w.Fill(ctx, client, progress)
//	err = w.Churn(ctx, client, 200, 10, progress, onChange)
//
// Objects look as those of kube-controller-manager do: names, labels, owners, annotations, order and size, so that
// bytes measured with them mean something. Two things differ. Services have no selector, so that a real controller,
// where one runs, leaves their endpoints alone; and Endpoints therefore carry endpointslice.kubernetes.io/skip-mirror,
// as those of the Service "kubernetes" do, else the mirroring controller would add slices of its own.
//
// One seed means one content and one order of changes; only what the server assigns (uid, resourceVersion,
// creationTimestamp, cluster IP) differs between runs. The package knows nothing of pools, links or hubs. Fill starts
// as many goroutines as it has writers and ends them before it returns; Churn writes in the goroutine of its caller.
package workload
