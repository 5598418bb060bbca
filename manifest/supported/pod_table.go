package supported

import "podd/manifest"

// schedulerOnly is the message for fields that only a scheduler uses.
const schedulerOnly = "has no effect, because podd runs every pod on this node"

// alwaysFails is the message for a hook that Kubernetes accepts although it always fails.
const alwaysFails = "a hook of this type always fails in Kubernetes; use exec, httpGet or sleep"

// windowsOnly is the message for fields that only a Windows node supports.
const windowsOnly = "is for Windows, but this node runs Linux; remove this field"

// EphemeralDirectory is the message for the settings of an ephemeral volume for which a directory
// is not sufficient.
const EphemeralDirectory = "podd provides ephemeral volumes as directories only; use a persistentVolumeClaim"

// noInitialContent is the message for fields that define the initial content of a volume.
const noInitialContent = "podd does not populate volumes; use an init container"

// gateDisabled is the message for fields that Kubernetes ignores unless a feature gate is enabled.
const gateDisabled = "requires a feature gate that Kubernetes disables by default; remove this field"

// noResourceClaims is the message for ResourceClaims. podd does not support them, because a driver
// of a cluster allocates their devices.
const noResourceClaims = "ResourceClaims require a cluster; remove this field, or mount the device with hostPath"

// Messages for unsupported network volumes and cloud disks.
const (
	onlyNFS       = "podd mounts no network volume of this type; use a volume of a CSI driver, or mount this volume on the host (/etc/fstab or a .mount unit) and use hostPath"
	noRBD         = "podd does not map RBD images, and Kubernetes has removed the driver of this volume; use a volume of a CSI driver"
	noCloudDisks  = "podd does not attach cloud disks; attach and mount the disk on the host and use hostPath, or a claim with a local PersistentVolume"
	onlyInCluster = "podd translates this volume to a volume of a CSI driver only in a cluster; use a PersistentVolume of type csi"
	driverRemoved = "Kubernetes has removed the driver of this volume; mount the volume on the host and use hostPath"
)

// forbiddenTemplateMetadata lists the metadata that the claim template of an ephemeral volume must
// not set. Kubernetes or the pod determines this metadata of the claim.
var forbiddenTemplateMetadata = append([]string{"name", "generateName", "namespace", "uid", "finalizers"}, manifest.ServerMetadataFields...)

// podFields lists for every field of a pod whether podd supports it. To support another
// field, add its row here, its validation, and its golden file.
var podFields = []row{
	{"apiVersion", supported, ""},
	{"kind", supported, ""},

	{"metadata.name", supported, ""},
	{"metadata.namespace", supported, ""},
	{"metadata.uid", supported, ""},
	{"metadata.labels", supported, ""},
	{"metadata.annotations", supported, ""},
	{"metadata.finalizers", acceptedWithWarning, "has no effect; podd deletes a pod when its manifest is removed"},
	{"metadata.generateName", acceptedWithWarning, "has no effect, because podd uses metadata.name"},

	{"spec.restartPolicy", supported, ""},
	{"spec.terminationGracePeriodSeconds", supported, ""},
	{"spec.activeDeadlineSeconds", supported, ""},
	{"spec.hostNetwork", supported, ""},
	{"spec.hostPID", supported, ""},
	{"spec.hostIPC", supported, ""},
	{"spec.hostname", supported, ""},
	{"spec.dnsPolicy", supported, ""},
	{"spec.dnsConfig", supported, ""},
	{"spec.nodeName", supported, ""},
	{"spec.priority", supported, ""},
	{"spec.priorityClassName", supported, ""},
	{"spec.imagePullSecrets", supported, ""},
	{"spec.enableServiceLinks", supported, ""},
	{"spec.readinessGates[].conditionType", supported, ""},
	{"spec.schedulerName", supported, ""},
	{"spec.tolerations", supported, ""},
	{"spec.automountServiceAccountToken", supported, ""},
	{"spec.serviceAccountName", acceptedWithWarning, "mounts no token, because there is no API server to issue one"},
	{"spec.serviceAccount", acceptedWithWarning, "mounts no token, because there is no API server to issue one"},
	{"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", supported, ""},
	{"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", acceptedWithWarning, schedulerOnly},
	{"spec.affinity.podAffinity", acceptedWithWarning, schedulerOnly},
	{"spec.affinity.podAntiAffinity", acceptedWithWarning, schedulerOnly},
	{"spec.nodeSelector", supported, ""},
	{"spec.topologySpreadConstraints", acceptedWithWarning, schedulerOnly},
	{"spec.runtimeClassName", supported, ""},
	{"spec.shareProcessNamespace", supported, ""},
	{"spec.setHostnameAsFQDN", supported, ""},
	{"spec.subdomain", supported, ""},
	{"spec.hostAliases", supported, ""},
	{"spec.hostUsers", supported, ""},
	{"spec.preemptionPolicy", supported, ""}, // has no effect, because only a scheduler uses this field
	{"spec.os.name", onlyOneValue, `"linux" must be linux, because this node runs Linux; correct or remove this field`},
	{"spec.schedulingGates", refusedWithNote, "scheduling gates require a scheduler; add the manifest when the pod may start"},
	{"spec.hostnameOverride", supported, ""},
	{"spec.schedulingGroup", refusedWithNote, "pod groups require a scheduler; remove this field"},
	{"spec.evictionResponders", refusedWithNote, gateDisabled},
	{"spec.resourceClaims", refusedWithNote, noResourceClaims},
	{"spec.overhead[cpu]", supported, ""},
	{"spec.overhead[memory]", supported, ""},
	{"spec.overhead[ephemeral-storage]", supported, ""},
	{"spec.overhead[" + hugePagesPattern + "]", supported, ""},
	{"spec.resources.claims", refusedWithNote, noResourceClaims},
	{"spec.resources.limits[cpu]", supported, ""},
	{"spec.resources.limits[memory]", supported, ""},
	{"spec.resources.limits[" + hugePagesPattern + "]", supported, ""},
	{"spec.resources.requests[cpu]", supported, ""},
	{"spec.resources.requests[memory]", supported, ""},
	{"spec.resources.requests[" + hugePagesPattern + "]", supported, ""},
	{"spec.ephemeralContainers", refusedWithNote, "is not allowed in a manifest; use a regular container, or add an ephemeral container to the running pod with \"podd debug\" or \"kubectl debug\""},

	{"spec.securityContext.runAsUser", supported, ""},
	{"spec.securityContext.runAsGroup", supported, ""},
	{"spec.securityContext.fsGroup", supported, ""},
	{"spec.securityContext.fsGroupChangePolicy", supported, ""},
	{"spec.securityContext.runAsNonRoot", supported, ""},
	{"spec.securityContext.supplementalGroups", supported, ""},
	{"spec.securityContext.supplementalGroupsPolicy", supported, ""},
	{"spec.securityContext.seLinuxOptions", supported, ""},
	{"spec.securityContext.seLinuxChangePolicy", supported, ""},
	{"spec.securityContext.appArmorProfile", supported, ""},
	{"spec.securityContext.windowsOptions", refusedWithNote, windowsOnly},
	{"spec.securityContext.seccompProfile", supported, ""},
	{"spec.securityContext.sysctls", supported, ""},

	{"spec.volumes[].name", supported, ""},
	{"spec.volumes[].emptyDir", supported, ""},
	{"spec.volumes[].emptyDir.mode", refusedWithNote, gateDisabled},
	{"spec.volumes[].hostPath", supported, ""},
	{"spec.volumes[].configMap", supported, ""},
	{"spec.volumes[].configMap.defaultUser", refusedWithNote, gateDisabled},
	{"spec.volumes[].configMap.items[].user", refusedWithNote, gateDisabled},
	{"spec.volumes[].secret", supported, ""},
	{"spec.volumes[].secret.defaultUser", refusedWithNote, gateDisabled},
	{"spec.volumes[].secret.items[].user", refusedWithNote, gateDisabled},
	{"spec.volumes[].downwardAPI", supported, ""},
	{"spec.volumes[].downwardAPI.defaultUser", refusedWithNote, gateDisabled},
	{"spec.volumes[].downwardAPI.items[].user", refusedWithNote, gateDisabled},
	{"spec.volumes[].nfs", supported, ""},
	{"spec.volumes[].iscsi", supported, ""},
	{"spec.volumes[].fc", supported, ""},
	{"spec.volumes[].persistentVolumeClaim", supported, ""},
	{"spec.volumes[].csi", supported, ""},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.metadata.labels", supported, ""},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.metadata.annotations", supported, ""},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.accessModes", supported, ""},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.resources", supported, ""},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.storageClassName", supported, ""},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.volumeMode", onlyOneValue, `"Filesystem" ` + EphemeralDirectory},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.volumeName", refusedWithNote, EphemeralDirectory},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.selector", refusedWithNote, EphemeralDirectory},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.dataSource", refusedWithNote, noInitialContent},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.dataSourceRef", refusedWithNote, noInitialContent},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.volumeAttributesClassName", refusedWithNote, noAttributesClass},
	{"spec.volumes[].image", supported, ""},
	{"spec.volumes[].projected.defaultMode", supported, ""},
	{"spec.volumes[].projected.defaultUser", refusedWithNote, gateDisabled},
	{"spec.volumes[].projected.sources[].configMap", supported, ""},
	{"spec.volumes[].projected.sources[].configMap.items[].user", refusedWithNote, gateDisabled},
	{"spec.volumes[].projected.sources[].secret", supported, ""},
	{"spec.volumes[].projected.sources[].secret.items[].user", refusedWithNote, gateDisabled},
	{"spec.volumes[].projected.sources[].downwardAPI", supported, ""},
	{"spec.volumes[].projected.sources[].downwardAPI.items[].user", refusedWithNote, gateDisabled},
	{"spec.volumes[].projected.sources[].serviceAccountToken", refusedWithNote, "there is no cluster to issue a token; remove this field, or use a Secret with a token"},
	{"spec.volumes[].projected.sources[].clusterTrustBundle", supported, ""},
	{"spec.volumes[].projected.sources[].clusterTrustBundle.user", refusedWithNote, gateDisabled},
	{"spec.volumes[].projected.sources[].podCertificate", refusedWithNote, "only a cluster has signers that issue certificates; use a Secret with a certificate"},
	{"spec.volumes[].gitRepo", refusedWithNote, "is not supported because of CVE-2024-10220; clone the repository in an init container"},
	{"spec.volumes[].cephfs", refusedWithNote, onlyNFS},
	{"spec.volumes[].glusterfs", refusedWithNote, onlyNFS},
	{"spec.volumes[].quobyte", refusedWithNote, onlyNFS},
	{"spec.volumes[].azureFile", refusedWithNote, onlyInCluster},
	{"spec.volumes[].rbd", refusedWithNote, noRBD},
	{"spec.volumes[].flexVolume", refusedWithNote, "FlexVolume drivers are not supported; mount the volume on the host and use hostPath, or a claim"},
	{"spec.volumes[].awsElasticBlockStore", refusedWithNote, noCloudDisks},
	{"spec.volumes[].azureDisk", refusedWithNote, noCloudDisks},
	{"spec.volumes[].cinder", refusedWithNote, noCloudDisks},
	{"spec.volumes[].gcePersistentDisk", refusedWithNote, noCloudDisks},
	{"spec.volumes[].vsphereVolume", refusedWithNote, noCloudDisks},
	{"spec.volumes[].photonPersistentDisk", refusedWithNote, driverRemoved},
	{"spec.volumes[].portworxVolume", refusedWithNote, onlyInCluster},
	{"spec.volumes[].scaleIO", refusedWithNote, driverRemoved},
	{"spec.volumes[].storageos", refusedWithNote, driverRemoved},
	{"spec.volumes[].flocker", refusedWithNote, driverRemoved},
}

// containerFields lists the fields of both regular and init containers.
var containerFields = []row{
	{"name", supported, ""},
	{"image", supported, ""},
	{"imagePullPolicy", supported, ""},
	{"command", supported, ""},
	{"args", supported, ""},
	{"workingDir", supported, ""},
	{"stdin", supported, ""},
	{"stdinOnce", supported, ""},
	{"tty", supported, ""},
	{"ports", supported, ""},
	{"livenessProbe", supported, ""},
	{"livenessProbe.httpGet.protocol", refusedWithNote, gateDisabled},
	{"livenessProbe.grpc.mode", refusedWithNote, gateDisabled},
	{"readinessProbe", supported, ""},
	{"readinessProbe.httpGet.protocol", refusedWithNote, gateDisabled},
	{"readinessProbe.grpc.mode", refusedWithNote, gateDisabled},
	{"startupProbe", supported, ""},
	{"startupProbe.httpGet.protocol", refusedWithNote, gateDisabled},
	{"startupProbe.grpc.mode", refusedWithNote, gateDisabled},
	{"restartPolicy", supported, ""},
	{"restartPolicyRules[].action", supported, ""},
	{"restartPolicyRules[].exitCodes.operator", supported, ""},
	{"restartPolicyRules[].exitCodes.values", supported, ""},
	{"lifecycle.stopSignal", supported, ""},
	{"lifecycle.postStart.exec", supported, ""},
	{"lifecycle.postStart.httpGet", supported, ""},
	{"lifecycle.postStart.httpGet.protocol", refusedWithNote, gateDisabled},
	{"lifecycle.postStart.sleep", supported, ""},
	{"lifecycle.postStart.tcpSocket", refusedWithNote, alwaysFails},
	{"lifecycle.preStop.exec", supported, ""},
	{"lifecycle.preStop.httpGet", supported, ""},
	{"lifecycle.preStop.httpGet.protocol", refusedWithNote, gateDisabled},
	{"lifecycle.preStop.sleep", supported, ""},
	{"lifecycle.preStop.tcpSocket", refusedWithNote, alwaysFails},
	{"terminationMessagePath", supported, ""},
	{"terminationMessagePolicy", supported, ""},

	{"env[].name", supported, ""},
	{"env[].value", supported, ""},
	{"envFrom", supported, ""},
	{"env[].valueFrom.configMapKeyRef", supported, ""},
	{"env[].valueFrom.secretKeyRef", supported, ""},
	{"env[].valueFrom.fieldRef", supported, ""},
	{"env[].valueFrom.resourceFieldRef", supported, ""},
	{"env[].valueFrom.fileKeyRef", supported, ""},

	{"resources.claims", refusedWithNote, noResourceClaims},
	{"resources.limits[cpu]", supported, ""},
	{"resources.limits[memory]", supported, ""},
	{"resources.requests[cpu]", supported, ""},
	{"resources.requests[memory]", supported, ""},
	{"resources.limits[ephemeral-storage]", supported, ""},
	{"resources.requests[ephemeral-storage]", supported, ""},
	{"resources.limits[" + hugePagesPattern + "]", supported, ""},
	{"resources.requests[" + hugePagesPattern + "]", supported, ""},
	{"resources.limits[" + extendedResourcePattern + "]", supported, ""},
	{"resources.requests[" + extendedResourcePattern + "]", supported, ""},
	{"resizePolicy[].resourceName", supported, ""},
	{"resizePolicy[].restartPolicy", supported, ""},

	{"volumeMounts[].name", supported, ""},
	{"volumeMounts[].mountPath", supported, ""},
	{"volumeMounts[].readOnly", supported, ""},
	{"volumeMounts[].subPath", supported, ""},
	{"volumeMounts[].subPathExpr", supported, ""},
	{"volumeMounts[].mountPropagation", supported, ""},
	{"volumeMounts[].recursiveReadOnly", supported, ""},
	{"volumeMounts[].bindMountOptions", refusedWithNote, gateDisabled},
	{"volumeDevices[].name", supported, ""},
	{"volumeDevices[].devicePath", supported, ""},

	{"securityContext.runAsUser", supported, ""},
	{"securityContext.runAsGroup", supported, ""},
	{"securityContext.runAsNonRoot", supported, ""},
	{"securityContext.privileged", supported, ""},
	{"securityContext.capabilities", supported, ""},
	{"securityContext.readOnlyRootFilesystem", supported, ""},
	{"securityContext.allowPrivilegeEscalation", supported, ""},
	{"securityContext.seccompProfile", supported, ""},
	{"securityContext.procMount", supported, ""},
	{"securityContext.seLinuxOptions", supported, ""},
	{"securityContext.appArmorProfile", supported, ""},
	{"securityContext.windowsOptions", refusedWithNote, windowsOnly},
}
