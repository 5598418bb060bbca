package redact

import (
	"reflect"
	"regexp"
	"strings"
	"sync"
)

// publicFields lists the fields that are not private, by type. They contain only names, counts or
// selectors. A text field that is not listed is private, including fields that a later version of
// the API adds.
//
// Commands and arguments are public because every user of the host can read them in /proc. A
// string, a list of strings or a map is one text field. A map of quantities is also a text field,
// because its keys are strings (names of resources).
var publicFields = parseFields(`
	AWSElasticBlockStoreVolumeSource: VolumeID FSType
	AppArmorProfile: Type LocalhostProfile
	AzureDiskVolumeSource: DiskName CachingMode FSType Kind
	AzureFileVolumeSource: SecretName ShareName
	CSIVolumeSource: Driver FSType
	Capabilities: Add Drop
	CephFSVolumeSource: Monitors Path User SecretFile
	CinderVolumeSource: VolumeID FSType
	ClusterTrustBundleProjection: Name SignerName Path
	ConfigMapKeySelector: Key
	Container: Name Image Command Args WorkingDir RestartPolicy TerminationMessagePath TerminationMessagePolicy ImagePullPolicy
	ContainerExtendedResourceRequest: ContainerName ResourceName RequestName
	ContainerPort: Name Protocol HostIP
	ContainerResizePolicy: ResourceName RestartPolicy
	ContainerRestartRule: Action
	ContainerRestartRuleOnExitCodes: Operator
	ContainerStateTerminated: Reason ContainerID
	ContainerStateWaiting: Reason
	ContainerStatus: Name Image ImageID ContainerID AllocatedResources StopSignal
	DownwardAPIVolumeFile: Path
	EmptyDirVolumeSource: Medium
	EnvFromSource: Prefix
	EnvVar: Name
	EphemeralContainer: TargetContainerName
	EphemeralContainerCommon: Name Image Command Args WorkingDir RestartPolicy TerminationMessagePath TerminationMessagePolicy ImagePullPolicy
	EvictionResponder: Name
	ExecAction: Command
	FCVolumeSource: TargetWWNs FSType WWIDs
	FileKeySelector: VolumeName Path Key
	FlexVolumeSource: Driver FSType
	FlockerVolumeSource: DatasetName DatasetUUID
	GCEPersistentDiskVolumeSource: PDName FSType
	GRPCAction: Service Mode
	GitRepoVolumeSource: Revision Directory
	GlusterfsVolumeSource: EndpointsName Path
	HTTPGetAction: Host Scheme Protocol
	HTTPHeader: Name
	HostAlias: IP Hostnames
	HostIP: IP
	HostPathVolumeSource: Path Type
	ISCSIVolumeSource: TargetPortal IQN ISCSIInterface FSType Portals InitiatorName
	ImageVolumeSource: Reference PullPolicy
	ImageVolumeStatus: ImageRef
	IntOrString: StrVal
	KeyToPath: Key Path
	LabelSelector: MatchLabels
	LabelSelectorRequirement: Key Operator Values
	Lifecycle: StopSignal
	LocalObjectReference: Name
	NFSVolumeSource: Server Path
	NodeAllocatableMappedResources: Name
	NodeAllocatableOverheadResources: Name
	NodeAllocatableResourceClaimStatus: ResourceClaimName Containers
	NodeSelectorRequirement: Key Operator Values
	ObjectFieldSelector: APIVersion FieldPath
	ObjectMeta: Name GenerateName Namespace SelfLink UID ResourceVersion Labels Finalizers
	OwnerReference: APIVersion Kind Name UID
	PersistentVolumeClaimSpec: AccessModes VolumeName StorageClassName VolumeMode VolumeAttributesClassName
	PersistentVolumeClaimVolumeSource: ClaimName
	PhotonPersistentDiskVolumeSource: PdID FSType
	PodAffinityTerm: Namespaces TopologyKey MatchLabelKeys MismatchLabelKeys
	PodCertificateProjection: SignerName KeyType CredentialBundlePath KeyPath CertificateChainPath
	PodCondition: Type Status Reason
	PodDNSConfig: Nameservers Searches
	PodDNSConfigOption: Name Value
	PodExtendedResourceClaimStatus: ResourceClaimName
	PodIP: IP
	PodOS: Name
	PodReadinessGate: ConditionType
	PodResourceClaim: Name ResourceClaimName ResourceClaimTemplateName
	PodResourceClaimStatus: Name ResourceClaimName
	PodSchedulingGate: Name
	PodSchedulingGroup: PodGroupName
	PodSecurityContext: SupplementalGroupsPolicy FSGroupChangePolicy SELinuxChangePolicy
	PodSpec: RestartPolicy DNSPolicy NodeSelector ServiceAccountName DeprecatedServiceAccount NodeName Hostname Subdomain SchedulerName PriorityClassName RuntimeClassName PreemptionPolicy Overhead HostnameOverride
	PodStatus: Phase Reason NominatedNodeName HostIP PodIP QOSClass Resize AllocatedResources
	PodVolumeHealth: Name
	PortworxVolumeSource: VolumeID FSType
	Quantity: Format
	QuobyteVolumeSource: Registry Volume User Group Tenant
	RBDVolumeSource: CephMonitors RBDImage FSType RBDPool RadosUser Keyring
	ResourceClaim: Name Request
	ResourceFieldSelector: ContainerName Resource
	ResourceHealth: ResourceID Health
	ResourceRequirements: Limits Requests
	ResourceStatus: Name
	SELinuxOptions: User Role Type Level
	ScaleIOVolumeSource: Gateway System ProtectionDomain StoragePool StorageMode VolumeName FSType
	SeccompProfile: Type LocalhostProfile
	SecretKeySelector: Key
	SecretVolumeSource: SecretName
	SecurityContext: ProcMount
	ServiceAccountTokenProjection: Audience Path
	StorageOSVolumeSource: VolumeName VolumeNamespace FSType
	Sysctl: Name Value
	TCPSocketAction: Host
	Toleration: Key Operator Value Effect
	TopologySpreadConstraint: TopologyKey WhenUnsatisfiable NodeAffinityPolicy NodeTaintsPolicy MatchLabelKeys
	TypeMeta: Kind APIVersion
	TypedLocalObjectReference: APIGroup Kind Name
	TypedObjectReference: APIGroup Kind Name Namespace
	Volume: Name
	VolumeDevice: Name DevicePath
	VolumeHealthCondition: Status Reason
	VolumeMount: Name RecursiveReadOnly MountPath SubPath MountPropagation SubPathExpr BindMountOptions
	VolumeMountStatus: Name MountPath RecursiveReadOnly
	VolumeResourceRequirements: Limits Requests
	VsphereVirtualDiskVolumeSource: VolumePath FSType StoragePolicyName StoragePolicyID
	WindowsSecurityContextOptions: GMSACredentialSpecName RunAsUserName
`)

// privatePaths matches a path that ends with a private field. It covers only the private fields
// that a validation message can be about.
var privatePaths = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|\.)annotations\[[^]]*\]$|\.env\[\d+\]\.value$|\.httpHeaders\[\d+\]\.value$|\.(volumeAttributes|options)\[[^]]*\]$|\.gitRepo\.repository$|\.dataDiskURI$|\.gmsaCredentialSpec$`)
})

// IsPrivate reports whether the field of a path in a manifest, such as
// "spec.containers[0].env[1].value", is private: a message about it must not quote
// its value.
func IsPrivate(path string) bool { return privatePaths().MatchString(path) }

// partlyPrivateFields lists private fields that have a public part. Each function removes the
// private part of the field.
var partlyPrivateFields = map[string]func(reflect.Value){
	"ObjectMeta.Annotations": keepSourceAnnotations,
	"HTTPGetAction.Path":     dropQuery,
}

// sourceAnnotations lists the annotations in which a node agent records the source of a pod.
var sourceAnnotations = []string{"kubernetes.io/config.hash", "kubernetes.io/config.mirror", "kubernetes.io/config.seen", "kubernetes.io/config.source"}

func keepSourceAnnotations(field reflect.Value) {
	annotations := map[string]string{}
	for _, key := range sourceAnnotations {
		if v := field.MapIndex(reflect.ValueOf(key)); v.IsValid() {
			annotations[key] = v.String()
		}
	}
	field.SetZero()
	if len(annotations) > 0 {
		field.Set(reflect.ValueOf(annotations))
	}
}

// dropQuery removes the query from a URL path, because the query may contain a token.
func dropQuery(field reflect.Value) {
	path, _, _ := strings.Cut(field.String(), "?")
	field.SetString(path)
}

// parseFields parses lines of the form "Type: Field Field".
func parseFields(table string) map[string]map[string]bool {
	fieldsByType := map[string]map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(table)) {
		name, fields, _ := strings.Cut(strings.TrimSpace(line), ":")
		fieldsByType[name] = map[string]bool{}
		for _, field := range strings.Fields(fields) {
			fieldsByType[name][field] = true
		}
	}
	return fieldsByType
}
