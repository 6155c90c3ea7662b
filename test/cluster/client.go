package main

import (
	"context"
	"flag"
	"os/signal"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// addonFlags are the flags that both of our own controllers have.
type addonFlags struct {
	kubeconfig string
	node       string
}

// parseAddonFlags registers and parses the shared flags together with those that the caller has registered.
func parseAddonFlags() addonFlags {
	var flags addonFlags
	klog.InitFlags(nil)
	flag.StringVar(&flags.kubeconfig, "kubeconfig", "", "kubeconfig file")
	flag.StringVar(&flags.node, "node", "", "name of the only node")
	flag.Parse()
	return flags
}

// client connects to the API server of the kubeconfig file.
func (f addonFlags) client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// untilSignal gives a context that ends with SIGTERM or SIGINT.
func untilSignal() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
}
