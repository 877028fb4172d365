/*
Copyright 2025 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// +k8s:openapi-gen=true
// +k8s:deepcopy-gen=package
// +k8s:protobuf-gen=package
// +k8s:prerelease-lifecycle-gen=true
// +k8s:openapi-model-package=io.k8s.api.resource.v1
// +groupName=resource.k8s.io
// +k8s:validation-gen=TypesWithSuffix=DeviceAttribute
// +k8s:validation-gen=TypesWithSuffix=NetworkDeviceData
// +k8s:validation-gen-input=k8s.io/api/resource/v1
// +k8s:validation-gen-scheme-registry=nil

// Package v1 is the v1 version of the resource API.
package v1
