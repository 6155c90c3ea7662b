// Package pause keeps the namespaces of a pod open: `kube pause` reaps orphans until it is ended.
//
// It runs while packages are initialised, and imports nothing but syscall, so that Go initialises it before the
// hundreds of packages of Kubernetes: every pod has one such process, and a few MiB less per pod are worth it.
package pause

import "syscall"

func init() {
	if !calledAsPause() {
		return
	}
	// SIGTERM and SIGINT need no handler: the Go runtime exits when their default action does nothing, as for PID 1.
	for {
		if _, err := syscall.Wait4(-1, nil, 0, nil); err == syscall.ECHILD {
			// No child now. The runtime's handler for SIGCHLD cuts the wait short when an orphan ends.
			_ = syscall.Nanosleep(&syscall.Timespec{Sec: 60}, nil)
		}
	}
}

// calledAsPause reads the process's own arguments: os.Args would need package os.
func calledAsPause() bool {
	file, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer syscall.Close(file)
	var line [256]byte
	length, err := syscall.Read(file, line[:])
	if err != nil {
		return false
	}
	argument := 0
	start := 0
	for at := 0; at < length; at++ {
		if line[at] != 0 {
			continue
		}
		if argument == 1 {
			return string(line[start:at]) == "pause"
		}
		argument++
		start = at + 1
	}
	return false
}
