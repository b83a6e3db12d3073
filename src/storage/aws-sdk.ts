/** The AWS SDK in use. The build bundles its packages into this file, loaded only for S3 and CloudFront. */
export {
  type $Command,
  AbortMultipartUploadCommand,
  type AbortMultipartUploadCommandInput,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  type GetObjectCommandOutput,
  GetObjectTaggingCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  PutObjectCommand,
  S3Client,
  type S3ClientResolvedConfig,
  type ServiceInputTypes,
  type ServiceOutputTypes,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
export { defaultProvider } from '@aws-sdk/credential-provider-node';
export { Sha256 } from '@smithy/core/checksum';
export { SignatureV4 } from '@smithy/signature-v4';
