package main

import (
	"github.com/coredns/coredns/coremain"

	// Exactly the plugins that the Corefile of addons.ts may name. There is no upstream server, so no `forward`.
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
)

// runCoreDNS serves names of Services and Pods until it is ended.
func runCoreDNS() { coremain.Run() }
