package main

import (
	"flag"

	"k8s.io/client-go/informers"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
)

// runNetworkPolicies enforces NetworkPolicy: it decides about each new connection that the node's
// iptables rules send to the kernel queue `-queue`. Without this process nothing answers, and new connections fail.
func runNetworkPolicies() error {
	queue := flag.Int("queue", 100, "number of the netfilter queue")
	flags := parseAddonFlags()
	ctx, stop := untilSignal()
	defer stop()

	client, err := flags.client()
	if err != nil {
		return err
	}
	const noResync = 0
	factory := informers.NewSharedInformerFactory(client, noResync)
	// The four nils switch off the kinds that only multi-cluster and admin policies need.
	controller, err := networkpolicy.NewController(client,
		factory.Networking().V1().NetworkPolicies(), factory.Core().V1().Namespaces(), factory.Core().V1().Pods(),
		nil, nil, nil, nil, networkpolicy.Config{NodeName: flags.node, QueueID: *queue})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	return controller.Run(ctx)
}
