/** Signed URLs and upload capabilities: `@darkroom-media/darkroom/signing`. */

export type { SignatureVerdict } from '../contract/signing/attachment-message.ts';
export type { SigningKeys } from './hmac.ts';
export type { Id } from './kinds.ts';
export {
  type SignAttachmentOptions,
  signAttachmentUrl,
  type VerifiedAttachment,
  verifyAttachmentUrl,
} from './signed-attachments.ts';
export { signExternalUrl, type VerifiedExternal, verifyExternalUrl } from './signed-external.ts';
export {
  createUploadCapability,
  type Upload,
  type UploadCapability,
  type UploadPart,
  type VerifiedUpload,
  verifyUploadCapability,
} from './upload-capabilities.ts';
