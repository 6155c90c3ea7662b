#!/bin/bash
# First process of a node cluster, in network, mount and PID namespaces of its own: when it dies, the kernel ends every
# process of the cluster, and with the last one go its mounts, links, routes and firewall rules. It only prepares the
# namespaces; node.ts starts the components in them.
# Arguments: folder of the cluster, control group, pod network, number of the policy queue, kube program.
set -eu
dir=$1 cgroup=$2 pods=$3 queue=$4 kube=$5

# The machine's /proc is still mounted here, so these are our number outside and the time of our start (field 22).
read -r -a stat < /proc/self/stat

mount --make-rprivate /
mount --make-rshared / # Between the cluster's own mount namespaces only.
mount -t proc proc /proc
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/containerd /run/netns /run/lock /run/libs/upper /run/libs/work /run/cluster

# The kubelet and CNI write to fixed folders in /var/lib. They get a layer of their own above it, so that the machine
# keeps nothing; the cluster's folder stays the real one even when it is below /var/lib.
mkdir -p "$dir/kubelet" "$dir/log/pods" "$dir/volumes"
mount --bind "$dir" /run/cluster
mount -t overlay overlay -o lowerdir=/var/lib,upperdir=/run/libs/upper,workdir=/run/libs/work /var/lib
case $dir/ in /var/lib/*) mount --bind /run/cluster "$dir" ;; esac
mkdir -p /var/lib/kubelet /var/lib/cni
mount --bind "$dir/kubelet" /var/lib/kubelet
mount --make-rshared /var/lib/kubelet
mount --bind "$dir/log/pods" /var/log

# The kubelet wants its control group to exist in every hierarchy.
if [ -s /sys/fs/cgroup/cgroup.controllers ]; then
  for controller in cpu cpuset memory pids; do echo "+$controller" > /sys/fs/cgroup/cgroup.subtree_control || true; done
  mkdir -p "/sys/fs/cgroup/$cgroup"
else
  for hierarchy in /sys/fs/cgroup/*/; do
    [ -e "$hierarchy/tasks" ] || continue
    mkdir -p "$hierarchy/$cgroup"
    for file in cpuset.cpus cpuset.mems; do
      [ ! -e "$hierarchy/$file" ] || cat "$hierarchy/$file" > "$hierarchy/$cgroup/$file"
    done
  done
fi

sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.route_localnet=1 net.ipv4.conf.all.rp_filter=0

# Each new connection of a pod waits in the queue for the policy engine's word; without the engine it fails. The engine's
# own nftables rules need an expression that not every kernel has, and never see what a pod sends to the node itself.
for direction in -s -d; do
  iptables -w -t mangle -A FORWARD "$direction" "$pods" -m conntrack --ctstate NEW -j NFQUEUE --queue-num "$queue"
done
iptables -w -t mangle -A INPUT -s "$pods" -m conntrack --ctstate NEW -j NFQUEUE --queue-num "$queue"

echo "${stat[0]} ${stat[21]}" > "$dir/init.pid.new"
mv "$dir/init.pid.new" "$dir/init.pid"
exec "$kube" pause
