package nodesync

import (
	"context"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/inuse"
	"podd/reconcile/volume/csi"
	"podd/server"
)

// Config describes the Node and how podd writes it. The bools, Taints, ProviderID, ProvidedIP and all
// fields whose comment allows nil are optional.
type Config struct {
	RegisterNode bool       // create the Node if it does not exist
	Taints       []v1.Taint // taints of a Node that podd creates
	// Unschedulable is spec.unschedulable of a Node that podd creates.
	Unschedulable bool
	ProviderID    string // spec.providerID of a Node that podd creates; "" for none
	// HasExternalCloud is set if a cloud controller sets the addresses of the Node and removes its
	// initial taint. ProvidedIP contains the addresses that the user has configured, or "". podd
	// passes ProvidedIP to the cloud controller in an annotation of the Node.
	HasExternalCloud             bool
	ProvidedIP                   string
	EnableControllerAttachDetach bool // the attach-detach controller attaches the volumes of this node
	// NodeSyncedFile is the path of an empty file that podd creates after it has synced the Node. If the
	// file exists, the host is not new.
	NodeSyncedFile string

	// UpdateFrequency is the interval at which podd compares the status of the Node in the API
	// server with the status of this node. ReportFrequency is the interval after which podd sends
	// an unchanged status again.
	UpdateFrequency, ReportFrequency time.Duration

	// DisksInUse returns the names of the iSCSI and Fibre Channel volumes on this node. It may be nil. If
	// it returns an error, its result contains the names that it could read.
	DisksInUse func() ([]v1.UniqueVolumeName, error)
	// OnRegistrationStep is called when a step of the registration of the node ends: before each attempt
	// to create the Node, after podd has created the Node, and after each status in which the Node is
	// ready. Calls are sequential. It may be nil.
	OnRegistrationStep func(step RegistrationStep, at time.Time)
}

// A RegistrationStep is a step of the registration of the node.
type RegistrationStep int

// The steps of the registration in their order.
const (
	Attempted  RegistrationStep = iota // podd tries to create the Node
	Registered                         // podd has created the Node
	Ready                              // the Node is ready in the API server
)

func (o *Config) endRegistrationStep(step RegistrationStep, at time.Time) {
	if o.OnRegistrationStep != nil {
		o.OnRegistrationStep(step, at)
	}
}

// Options configures a Syncer. CSI may be nil.
type Options struct {
	Config
	NodeName     string // name of the Node
	Client       *apiserver.Client
	State        server.Viewer // provides the Node as it should be in the API server
	VolumesInUse *inuse.Volumes
	CSI          CSIVolumes
	// ResetsExtended is set if the first status sets the extended resources of an existing Node to 0, as
	// the kubelet does on a host without files of device plugins (reconcileExtendedResource in
	// pkg/kubelet/kubelet_node_status.go).
	ResetsExtended bool
	// Report is called with the result of each attempt to sync the Node; nil is a success.
	Report func(context.Context, error)
	Log    *slog.Logger
}

// CSIVolumes provides the CSI volumes of this node.
type CSIVolumes interface {
	// VolumesInUse returns the volumes on this node, and a channel that is closed when they change. The
	// result contains a volume from the time before the first call of its driver until the volume has
	// been removed.
	VolumesInUse() ([]csi.VolumeID, <-chan struct{})
}

// A DeletedError is the error of a Node that another client has deleted. A retry cannot solve it.
type DeletedError struct{ Node string }

// A MissingError is the error of a Node that does not exist and that podd must not create. A retry cannot
// solve it.
type MissingError struct{ Node string }

func (e DeletedError) Error() string { return "node " + e.Node + " was deleted" }
func (e MissingError) Error() string { return "node " + e.Node + " does not exist" }
