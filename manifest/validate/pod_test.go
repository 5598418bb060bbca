package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"podd/manifest/decode"
)

const affinityTerms = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"

// TestValidation sets valid and invalid values in an otherwise valid pod, and checks for which fields
// there is a problem. The golden file of invalid.yaml contains every message with its position.
func TestValidation(t *testing.T) {
	tests := []struct{ meta, spec, container, want string }{
		{want: ""},
		{meta: "namespace: " + strings.Repeat("a", 63)},
		{meta: "namespace: " + strings.Repeat("a", 64), want: "metadata.namespace"},
		{meta: "uid: " + strings.Repeat("a", 63)},
		{meta: "uid: " + strings.Repeat("a", 64), want: "metadata.uid"},
		{meta: `uid: "a/b"`, want: "metadata.uid"},
		{meta: `uid: ".."`, want: "metadata.uid"},
		{meta: `uid: ""`},
		{meta: "labels: {a: " + strings.Repeat("a", 63) + "}"},
		{meta: "labels: {a: " + strings.Repeat("a", 64) + "}", want: "metadata.labels[a]"},
		{meta: "annotations: {Example.COM/a: b}"},
		{meta: "annotations: {a: " + strings.Repeat("a", 1<<18) + "}", want: "metadata.annotations"},

		{spec: "terminationGracePeriodSeconds: 0"},
		{spec: "terminationGracePeriodSeconds: -1", want: "spec.terminationGracePeriodSeconds"},
		{spec: "restartPolicy: always", want: "spec.restartPolicy"},
		{spec: "nodeName: node"},
		{spec: "nodeName: m", want: "spec.nodeName"},
		{spec: "hostname: " + strings.Repeat("a", 63)},
		{spec: "hostname: " + strings.Repeat("a", 64), want: "spec.hostname"},
		{spec: "subdomain: " + strings.Repeat("a", 63)},
		{spec: "subdomain: a.b", want: "spec.subdomain"},
		{spec: "shareProcessNamespace: true"},
		{spec: "shareProcessNamespace: true, hostPID: true", want: "spec.shareProcessNamespace"},
		{spec: "shareProcessNamespace: false, hostPID: true"},
		{spec: "hostAliases: [{ip: 192.0.2.1, hostnames: [a, b.c]}, {ip: '2001:db8::1'}]"},
		{spec: "hostAliases: [{ip: x, hostnames: [a]}]", want: "spec.hostAliases[0].ip"},
		{spec: "hostAliases: [{ip: 192.0.2.1, hostnames: [a, B]}]", want: "spec.hostAliases[0].hostnames[1]"},
		{spec: "dnsPolicy: None, dnsConfig: {nameservers: [192.0.2.1]}"},
		{spec: "dnsPolicy: None", want: "spec.dnsConfig.nameservers"},
		{spec: "dnsConfig: {nameservers: [192.0.2.1, '2001:db8::1', 192.0.2.3]}"},
		{spec: "dnsConfig: {nameservers: ['fe80::1%eth0']}", want: "spec.dnsConfig.nameservers[0]"},
		{spec: "dnsConfig: {searches: [" + strings.Repeat("a,", 31) + "a]}"},
		{spec: "dnsConfig: {searches: [" + strings.Repeat("a,", 32) + "a]}", want: "spec.dnsConfig.searches"},
		{spec: "securityContext: {runAsUser: 2147483647}"},
		{spec: "securityContext: {runAsUser: 2147483648}", want: "spec.securityContext.runAsUser"},
		{spec: "runtimeClassName: Kata", want: "spec.runtimeClassName"},
		{spec: "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}, {key: a, operator: Lt, values: ['-1']}]}, {}]}}}"},
		{spec: "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}", want: affinityTerms},
		{spec: "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}}}", want: affinityTerms + "[0].matchExpressions[0].values"},
		{spec: "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists, values: [b]}]}]}}}", want: affinityTerms + "[0].matchExpressions[0].values"},
		{spec: "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: [b]}]}]}}}", want: affinityTerms + "[0].matchExpressions[0].values[0]"},
		{spec: "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Is}]}]}}}", want: affinityTerms + "[0].matchExpressions[0].operator"},
		{spec: "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.uid, operator: In, values: [m]}]}]}}}", want: affinityTerms + "[0].matchFields[0].key"},
		{spec: "hostUsers: false", container: "securityContext: {procMount: Unmasked}"},
		{spec: "hostUsers: true", container: "securityContext: {procMount: Unmasked}", want: "spec.containers[0].securityContext.procMount"},
		{container: "securityContext: {procMount: Masked}", want: "spec.containers[0].securityContext.procMount"},
		{spec: "hostUsers: false, hostPID: true", want: "spec.hostPID"},
		{spec: "hostUsers: false, hostIPC: true", want: "spec.hostIPC"},
		{spec: "hostUsers: false, hostNetwork: true", want: "spec.hostNetwork"},
		{spec: "securityContext: {supplementalGroupsPolicy: Strict}"},
		{spec: "securityContext: {supplementalGroupsPolicy: None}", want: "spec.securityContext.supplementalGroupsPolicy"},
		{spec: "securityContext: {appArmorProfile: {type: Unconfined}}", container: "securityContext: {appArmorProfile: {type: Localhost, localhostProfile: a b}}"},
		{container: "securityContext: {appArmorProfile: {type: Localhost}}", want: "spec.containers[0].securityContext.appArmorProfile.localhostProfile"},
		{container: "securityContext: {appArmorProfile: {type: Localhost, localhostProfile: ' a'}}", want: "spec.containers[0].securityContext.appArmorProfile.localhostProfile"},
		{container: "securityContext: {appArmorProfile: {type: RuntimeDefault, localhostProfile: a}}", want: "spec.containers[0].securityContext.appArmorProfile.localhostProfile"},
		{container: "securityContext: {appArmorProfile: {type: Odd}}", want: "spec.containers[0].securityContext.appArmorProfile.type"},
		{meta: "annotations: {container.apparmor.security.beta.kubernetes.io/main: localhost/a}"},
		{meta: "annotations: {container.apparmor.security.beta.kubernetes.io/main: localhost/a}", container: "securityContext: {appArmorProfile: {type: Localhost, localhostProfile: a}}"},
		{meta: "annotations: {container.apparmor.security.beta.kubernetes.io/main: localhost/a}", container: "securityContext: {appArmorProfile: {type: Unconfined}}", want: "spec.containers[0].securityContext.appArmorProfile.type"},
		{meta: "annotations: {container.apparmor.security.beta.kubernetes.io/main: localhost/}", want: "metadata.annotations[container.apparmor.security.beta.kubernetes.io/main]"},
		{meta: "annotations: {container.apparmor.security.beta.kubernetes.io/main: mine}", want: "metadata.annotations[container.apparmor.security.beta.kubernetes.io/main]"},
		{meta: "annotations: {container.apparmor.security.beta.kubernetes.io/x: unconfined}", want: "metadata.annotations[container.apparmor.security.beta.kubernetes.io/x]"},
		{spec: "securityContext: {seccompProfile: {type: Localhost, localhostProfile: a/..b/c.json}}"},
		{spec: "securityContext: {seccompProfile: {type: Localhost, localhostProfile: ''}}", want: "spec.securityContext.seccompProfile.localhostProfile"},
		{spec: "securityContext: {seccompProfile: {type: Localhost, localhostProfile: /a}}", want: "spec.securityContext.seccompProfile.localhostProfile"},
		{spec: "securityContext: {seccompProfile: {type: Localhost, localhostProfile: a/../../b}}", want: "spec.securityContext.seccompProfile.localhostProfile"},
		{container: "securityContext: {seccompProfile: {type: Localhost}}", want: "spec.containers[0].securityContext.seccompProfile.localhostProfile"},
		{spec: "securityContext: {sysctls: [{name: kernel.sem, value: a}, {name: kernel/shm_rmid_forced, value: ''}]}"},
		{spec: "securityContext: {sysctls: [{name: kernel.sem, value: a}, {name: kernel/sem, value: a}]}", want: "spec.securityContext.sysctls[1].name"},
		{spec: "securityContext: {sysctls: [{name: net/ipv4/../../x, value: a}]}", want: "spec.securityContext.sysctls[0].name"},
		{spec: "hostNetwork: true, securityContext: {sysctls: [{name: net/core/x, value: a}, {name: kernel.sem, value: a}]}", want: "spec.securityContext.sysctls[0].name"},
		{spec: "hostIPC: true, securityContext: {sysctls: [{name: fs.mqueue.msg_max, value: a}, {name: net.x, value: a}]}", want: "spec.securityContext.sysctls[0].name"},
		{spec: "securityContext: {runAsNonRoot: true, runAsUser: 1}"},
		{spec: "securityContext: {runAsNonRoot: true}", container: "securityContext: {runAsUser: 0}", want: "spec.containers[0].securityContext.runAsUser"},
		{spec: "volumes: [{name: a, emptyDir: {sizeLimit: 0}}, {name: b}]"},
		{spec: "volumes: [{name: a, hostPath: {path: /}}]"},
		{spec: "volumes: [{name: a, hostPath: {path: /a/..b}}]"},
		{spec: "volumes: [{name: a, hostPath: {path: /a/..}}]", want: "spec.volumes[0].hostPath.path"},
		{spec: "volumes: [{name: a, hostPath: {path: \"/a\\0\"}}]", want: "spec.volumes[0].hostPath.path"},
		{spec: "volumes: [{name: a, image: {reference: i}}]"},
		{spec: "volumes: [{name: a, image: {}}]", want: "spec.volumes[0].image.reference"},
		{spec: "volumes: [{name: a, image: {reference: i, pullPolicy: Often}}]", want: "spec.volumes[0].image.pullPolicy"},
		{spec: "volumes: [{name: a, persistentVolumeClaim: {}}]", want: "spec.volumes[0].persistentVolumeClaim.claimName"},
		{spec: "volumes: [{name: a, hostPath: {path: /a}, image: {reference: i}, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}}}}}]", want: "spec.volumes[0]"},
		{spec: "volumes: [{name: a, ephemeral: {}}]", want: "spec.volumes[0].ephemeral.volumeClaimTemplate"},
		{spec: "volumes: [{name: a, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], volumeName: v, resources: {requests: {storage: 1}}}}}}]", want: "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.volumeName"},
		{spec: "securityContext: {fsGroupChangePolicy: Sometimes}", want: "spec.securityContext.fsGroupChangePolicy"},
		{spec: "volumes: [{name: c, persistentVolumeClaim: {claimName: c}}, {name: d, persistentVolumeClaim: {claimName: d}}, {name: e, emptyDir: {}}]", container: "volumeDevices: [{name: c, devicePath: /dev/c}, {name: d, devicePath: /dev/d}]"},
		{spec: "volumes: [{name: c, persistentVolumeClaim: {claimName: c}}, {name: d, persistentVolumeClaim: {claimName: d}}, {name: e, emptyDir: {}}]", container: "volumeDevices: [{name: c, devicePath: /dev/c}, {name: c, devicePath: /dev/d}]", want: "spec.containers[0].volumeDevices[1].name"},
		{spec: "volumes: [{name: c, persistentVolumeClaim: {claimName: c}}, {name: d, persistentVolumeClaim: {claimName: d}}, {name: e, emptyDir: {}}]", container: "volumeDevices: [{name: c, devicePath: /dev/c}, {name: d, devicePath: /dev/c}]", want: "spec.containers[0].volumeDevices[1].devicePath"},
		{spec: "volumes: [{name: c, persistentVolumeClaim: {claimName: c}}, {name: d, persistentVolumeClaim: {claimName: d}}, {name: e, emptyDir: {}}]", container: "volumeDevices: [{name: c}]", want: "spec.containers[0].volumeDevices[0].devicePath"},
		{spec: "volumes: [{name: c, persistentVolumeClaim: {claimName: c}}, {name: d, persistentVolumeClaim: {claimName: d}}, {name: e, emptyDir: {}}]", container: "volumeDevices: [{devicePath: /a}]", want: "spec.containers[0].volumeDevices[0].name"},
		{spec: "volumes: [{name: c, persistentVolumeClaim: {claimName: c}}, {name: d, persistentVolumeClaim: {claimName: d}}, {name: e, emptyDir: {}}]", container: "volumeDevices: [{name: z, devicePath: /a}]", want: "spec.containers[0].volumeDevices[0].name"},
		{spec: "volumes: [{name: c, persistentVolumeClaim: {claimName: c}}, {name: d, persistentVolumeClaim: {claimName: d}}, {name: e, emptyDir: {}}]", container: "volumeDevices: [{name: e, devicePath: /a}]", want: "spec.containers[0].volumeDevices[0].name"},
		{spec: "volumes: [{name: c, persistentVolumeClaim: {claimName: c}}, {name: d, persistentVolumeClaim: {claimName: d}}, {name: e, emptyDir: {}}]", container: "volumeDevices: [{name: c, devicePath: /a/../b}]", want: "spec.containers[0].volumeDevices[0].devicePath"},
		{spec: "hostUsers: false, volumes: [{name: c, persistentVolumeClaim: {claimName: c}}, {name: d, persistentVolumeClaim: {claimName: d}}, {name: e, emptyDir: {}}]", container: "volumeDevices: [{name: c, devicePath: /dev/c}]", want: "spec.containers[0].volumeDevices"},
		{spec: "volumes: [{name: a, nfs: {server: s, path: /}}]"},
		{spec: "volumes: [{name: a, nfs: {server: \"fe80::1\", path: /a b, readOnly: true}}]"},
		{spec: "volumes: [{name: a, nfs: {path: /}}]", want: "spec.volumes[0].nfs.server"},
		{spec: "volumes: [{name: a, nfs: {server: a b, path: /}}]", want: "spec.volumes[0].nfs.server"},
		{spec: "volumes: [{name: a, nfs: {server: -s, path: /}}]", want: "spec.volumes[0].nfs.server"},
		{spec: "volumes: [{name: a, nfs: {server: s, path: a}}]", want: "spec.volumes[0].nfs.path"},
		{spec: "volumes: [{name: a, nfs: {server: s, path: \"/a\\n\"}}]", want: "spec.volumes[0].nfs.path"},
		{spec: "volumes: [{name: a, cephfs: {monitors: [m]}}]", want: "spec.volumes[0].cephfs"},
		{spec: "initContainers: [{name: i, image: i, restartPolicy: Always}]"},
		{spec: "initContainers: [{name: i, image: i, restartPolicy: OnFailure}]"},
		{spec: "initContainers: [{name: i, image: i, restartPolicy: Never, restartPolicyRules: [{}]}]", want: "spec.initContainers[0].restartPolicyRules[0].action spec.initContainers[0].restartPolicyRules[0].exitCodes"},
		{spec: "initContainers: [{name: i, image: i, restartPolicy: Sometimes, restartPolicyRules: []}]", want: "spec.initContainers[0].restartPolicy"},
		{spec: "initContainers: [{name: i, image: i, restartPolicy: Always, restartPolicyRules: [{}]}]", want: "spec.initContainers[0].restartPolicyRules[0].action spec.initContainers[0].restartPolicyRules[0].exitCodes"},
		{spec: "initContainers: [{name: i, image: i, restartPolicyRules: [{}]}]", want: "spec.initContainers[0].restartPolicy"},
		{container: "restartPolicy: Always"},
		{container: "restartPolicyRules: []"},
		{container: "restartPolicyRules: [{}]", want: "spec.containers[0].restartPolicy spec.containers[0].restartPolicyRules[0].action spec.containers[0].restartPolicyRules[0].exitCodes"},
		{spec: "initContainers: [{name: main, image: i}]", want: "spec.initContainers[0].name"},
		{spec: "initContainers: [{name: i, image: i, ports: [{containerPort: 1, hostPort: 5}]}]", container: "ports: [{containerPort: 1, hostPort: 5}]"},

		{container: "ports: [{containerPort: 65535}]"},
		{container: "ports: [{containerPort: 65536}]", want: "spec.containers[0].ports[0].containerPort"},
		{container: "ports: [{containerPort: 1, hostPort: 5}, {containerPort: 2, hostPort: 5, protocol: UDP}]"},
		{container: "ports: [{containerPort: 1, hostPort: 5}, {containerPort: 2, hostPort: 5, hostIP: 0.0.0.0}]", want: "spec.containers[0].ports[1].hostPort"},
		{container: "ports: [{containerPort: 1, name: a}, {containerPort: 2, name: a}]", want: "spec.containers[0].ports[1].name"},
		{spec: "hostNetwork: true", container: "ports: [{containerPort: 1, hostPort: 1}]"},
		{spec: "hostNetwork: true", container: "ports: [{containerPort: 1, hostPort: 2}]", want: "spec.containers[0].ports[0].hostPort"},
		{container: `env: [{name: "a b.c-d"}]`},
		{container: `env: [{name: "a=b"}]`, want: "spec.containers[0].env[0].name"},
		{container: `env: [{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['Example.COM/a']"}}}]`},
		{container: `env: [{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.annotations"}}}]`, want: "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"},
		{container: `env: [{name: A, valueFrom: {fieldRef: {fieldPath: "spec.host"}}}]`},
		{container: `env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}]`},
		{container: `env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 2Mi}}}]`, want: "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor"},
		{container: "resources: {requests: {cpu: 1}, limits: {cpu: 1000m}}"},
		{container: "resources: {requests: {cpu: 1001m}, limits: {cpu: 1}}", want: "spec.containers[0].resources.requests[cpu]"},
		{container: "resources: {limits: {cpu: -1}}", want: "spec.containers[0].resources.limits[cpu]"},
		{spec: "volumes: [{name: a}]", container: "volumeMounts: [{name: a, mountPath: /a}, {name: a, mountPath: /b}]"},
		{spec: "volumes: [{name: a}]", container: "volumeMounts: [{name: a, mountPath: /a}, {name: a, mountPath: //a/.}]", want: "spec.containers[0].volumeMounts[1].mountPath"},
		{spec: "volumes: [{name: a}]", container: "volumeMounts: [{name: a, mountPath: /a, subPath: a..b/..c}, {name: a, mountPath: /b, subPathExpr: ./$(A)}]"},
		{spec: "volumes: [{name: a}]", container: "volumeMounts: [{name: a, mountPath: /a, subPath: a/..}]", want: "spec.containers[0].volumeMounts[0].subPath"},
		{spec: "volumes: [{name: a}]", container: "volumeMounts: [{name: a, mountPath: /a, subPath: /a}]", want: "spec.containers[0].volumeMounts[0].subPath"},
		{spec: "volumes: [{name: a}]", container: "volumeMounts: [{name: a, mountPath: /a, subPathExpr: ../$(A)}]", want: "spec.containers[0].volumeMounts[0].subPathExpr"},
		{spec: "volumes: [{name: a}]", container: "volumeMounts: [{name: a, mountPath: /a, subPath: a, subPathExpr: b}]", want: "spec.containers[0].volumeMounts[0].subPathExpr"},
		{spec: "volumes: [{name: a}]", container: "volumeMounts: [{name: a, mountPath: /a, mountPropagation: HostToContainer}]"},
		{spec: "volumes: [{name: a}]", container: "securityContext: {privileged: true}, volumeMounts: [{name: a, mountPath: /a, mountPropagation: Bidirectional}]"},
		{spec: "volumes: [{name: a}]", container: "volumeMounts: [{name: a, mountPath: /a, mountPropagation: Bidirectional}]", want: "spec.containers[0].volumeMounts[0].mountPropagation"},
		{spec: "volumes: [{name: a}]", container: "volumeMounts: [{name: a, mountPath: /a, mountPropagation: Sideways}]", want: "spec.containers[0].volumeMounts[0].mountPropagation"},
		{spec: "volumes: [{name: a}]", container: "volumeMounts: [{name: a, mountPath: /a, readOnly: true, recursiveReadOnly: Enabled, mountPropagation: None}]"},
		{spec: "volumes: [{name: a}]", container: "volumeMounts: [{name: a, mountPath: /a, recursiveReadOnly: IfPossible}]", want: "spec.containers[0].volumeMounts[0].recursiveReadOnly"},
		{spec: "volumes: [{name: a}]", container: "volumeMounts: [{name: a, mountPath: /a, readOnly: true, recursiveReadOnly: Maybe}]", want: "spec.containers[0].volumeMounts[0].recursiveReadOnly"},
		{spec: "volumes: [{name: a}]", container: "volumeMounts: [{name: a, mountPath: /a, readOnly: true, recursiveReadOnly: Enabled, mountPropagation: HostToContainer}]", want: "spec.containers[0].volumeMounts[0].recursiveReadOnly"},
		{container: "volumeMounts: [{name: a, mountPath: /a}]", want: "spec.containers[0].volumeMounts[0].name"},
		{container: "securityContext: {privileged: true, allowPrivilegeEscalation: true}"},
		{container: "securityContext: {privileged: true, allowPrivilegeEscalation: false}", want: "spec.containers[0].securityContext.allowPrivilegeEscalation"},
		{container: `command: ["a\0"]`, want: "spec.containers[0].command[0]"},
		{container: `env: [{name: A, value: "\0"}]`, want: "spec.containers[0].env[0].value"},
	}
	for _, tt := range tests {
		comma := func(s string) string {
			if s == "" {
				return ""
			}
			return ", " + s
		}
		text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: web%s}\nspec: {containers: [{name: main, image: i%s}]%s}\n",
			comma(tt.meta), comma(tt.container), comma(tt.spec))
		f := decode.File([]byte(text), decode.Options{NodeName: "node"})
		var fields []string
		for _, p := range f.Problems {
			fields = append(fields, p.FieldPath)
			if p.Position.Line < 3 {
				t.Errorf("%s\nproblem of %s: got position %v, want line 3 or later", text, p.FieldPath, p.Position)
			}
		}
		if got := strings.Join(fields, " "); got != tt.want {
			t.Errorf("%.300s\ngot problems about the fields %q, want %q; problems: %v", text, got, tt.want, f.Problems)
		}
	}
}
