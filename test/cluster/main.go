// Command kube holds every component of a one-node Kubernetes cluster in one static program:
// `kube <component> [flags]`. The tests build it once and start one process per component;
// the same file is also the only file of the container image of the pause container and of CoreDNS.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"

	_ "beeuni.dev/test/cluster/pause"
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// components maps a subcommand to what runs it; each one returns the exit code of the process.
// All of them read os.Args, from which main has taken the program's own name away.
var components = map[string]func() int{
	"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver":          cobraComponent(apiserver.NewAPIServerCommand),
	"kube-controller-manager": cobraComponent(controllers.NewControllerManagerCommand),
	"kube-scheduler":          cobraComponent(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubelet":                 cobraComponent(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	"kube-proxy":              cobraComponent(proxy.NewProxyCommand),
	"kubectl":                 cobraComponent(func() *cobra.Command { return kubectl.NewDefaultKubectlCommand() }),
	"coredns":                 func() int { runCoreDNS(); return 0 },
	"netpol":                  fallible(runNetworkPolicies),
	"provisioner":             fallible(runProvisioner),
	// Package pause has taken over before main when this is asked for.
	"pause": func() int { return 0 },
}

func cobraComponent(build func() *cobra.Command) func() int {
	return func() int { return cli.Run(build()) }
}

func fallible(run func() error) func() int {
	return func() int {
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
}

func main() {
	if len(os.Args) > 1 {
		if run, known := components[os.Args[1]]; known {
			os.Args = os.Args[1:]
			os.Exit(run())
		}
	}
	names := make([]string, 0, len(components))
	for name := range components {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "usage: kube <component> [flags]\ncomponents: %s\n", strings.Join(names, " "))
	os.Exit(2)
}
