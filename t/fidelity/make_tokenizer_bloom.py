#!/usr/bin/env python3
"""Makes t/fidelity/tokenizer-bloom/tokenizer.json: a small tokenizer in the form of BLOOM's.

The pattern and all settings are BLOOM's; the vocabulary has its four control tokens, 256 bytes, and
merges of the text below.  The script uses the tokenizers package of requirements.txt.
"""

import json
import os

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = 600
SPLIT = r" ?[^(\s|[.,!?…。，、।۔،])]+"
CONTROL = ["<unk>", "<s>", "</s>", "<pad>"]

TEXT = """
Translate to Hindi: Hello friend, how are you? Translate to Bengali: Good morning, have a nice day.
Thank you very much for your help. Welcome to our school. How can I help you today? This is a
beautiful day. Please come with me. I love learning new things. Where is the nearest restaurant?
What time is it now? Le café est près de la fenêtre. El niño va a la escuela mañana.
नमस्ते दोस्त, आप कैसे हैं? आपकी मदद के लिए बहुत धन्यवाद। यह एक सुंदर दिन है।
সুপ্রভাত, আপনার দিনটি শুভ হোক। আপনাকে অনেক ধন্যবাদ।
உங்கள் உதவிக்கு மிக்க நன்றி. எங்கள் பள்ளிக்கு வருக.
మా పాఠశాలకు స్వాగతం. మీ సహాయానికి ధన్యవాదాలు.
આજે હું તમને કેવી રીતે મદદ કરી શકું? આભાર.
براہ کرم میرے ساتھ آئیں۔ بہت شکریہ، خدا حافظ۔ مرحبا، كيف حالك؟
ਮੈਨੂੰ ਨਵੀਆਂ ਚੀਜ਼ਾਂ ਸਿੱਖਣਾ ਪਸੰਦ ਹੈ। ਧੰਨਵਾਦ।
ಹತ್ತಿರದ ಉಪಾಹಾರ ಗೃಹ ಎಲ್ಲಿದೆ? ಧನ್ಯವಾದ.
ഇപ്പോൾ സമയം എത്രയായി? നന്ദി.
今何時ですか。你好，你好吗？谢谢、再见。 Который час? Спасибо за помощь.
"""


def main():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    t.train_from_iterator([TEXT] * 2, trainers.BpeTrainer(
        vocab_size=ROWS, special_tokens=CONTROL, initial_alphabet=alphabet, show_progress=False))
    os.makedirs(os.path.join(HERE, "tokenizer-bloom"), exist_ok=True)
    path = os.path.join(HERE, "tokenizer-bloom", "tokenizer.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(json.loads(t.to_str()), f, ensure_ascii=False)
        f.write("\n")


if __name__ == "__main__":
    main()
