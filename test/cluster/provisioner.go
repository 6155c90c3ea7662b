package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v11/controller"
)

// directories provisions one directory of the node per volume claim. A claim's size is not enforced.
type directories struct {
	root string
	node string
}

// Provision makes the directory of one claim and describes it as a local volume of the only node.
func (d directories) Provision(_ context.Context, options controller.ProvisionOptions) (*core.PersistentVolume, controller.ProvisioningState, error) {
	claim := options.PVC
	path := filepath.Join(d.root, claim.Namespace+"_"+claim.Name+"_"+options.PVName)
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	// MkdirAll obeys the umask; pods of any user must be able to write.
	if err := os.Chmod(path, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	filesystem := core.PersistentVolumeFilesystem
	onThisNode := core.NodeSelectorRequirement{Key: core.LabelHostname, Operator: core.NodeSelectorOpIn, Values: []string{d.node}}
	return &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{Name: options.PVName},
		Spec: core.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    &filesystem,
			MountOptions:                  options.StorageClass.MountOptions,
			Capacity:                      core.ResourceList{core.ResourceStorage: claim.Spec.Resources.Requests[core.ResourceStorage]},
			PersistentVolumeSource:        core.PersistentVolumeSource{Local: &core.LocalVolumeSource{Path: path}},
			NodeAffinity: &core.VolumeNodeAffinity{Required: &core.NodeSelector{
				NodeSelectorTerms: []core.NodeSelectorTerm{{MatchExpressions: []core.NodeSelectorRequirement{onThisNode}}},
			}},
		},
	}, controller.ProvisioningFinished, nil
}

// Delete removes the directory of one volume; it refuses a path that is not directly below our root.
func (d directories) Delete(_ context.Context, volume *core.PersistentVolume) error {
	if volume.Spec.Local == nil || filepath.Dir(volume.Spec.Local.Path) != filepath.Clean(d.root) {
		return fmt.Errorf("volume %s is not below %s", volume.Name, d.root)
	}
	return os.RemoveAll(volume.Spec.Local.Path)
}

// runProvisioner serves the StorageClass whose provisioner is `-name`.
func runProvisioner() error {
	root := flag.String("dir", "", "directory that holds all volumes")
	name := flag.String("name", "beeuni.dev/directories", "provisioner name, as in the StorageClass")
	flags := parseAddonFlags()
	ctx, stop := untilSignal()
	defer stop()

	client, err := flags.client()
	if err != nil {
		return err
	}
	controller.NewProvisionController(ctx, client, *name, directories{*root, flags.node}, controller.LeaderElection(false)).Run(ctx)
	return nil
}
