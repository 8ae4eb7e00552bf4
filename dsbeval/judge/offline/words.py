"""The word lists of the offline judge. Phrases are matched as whole words, in any case."""

from __future__ import annotations

ASSISTANT = (
    "as an ai", "an ai", "ai assistant", "ai model", "language model", "virtual assistant", "digital assistant",
    "chatbot", "my training", "i was programmed", "how can i assist you", "how may i assist you",
    "i'm here to assist", "i cannot assist", "i can't assist",
)  # fmt: skip
"""What no role would say."""

SERVICE = (
    "here to help", "how can i help", "how may i help", "what you need today", "let me know", "feel free",
    "happy to help", "happy to chat", "is there anything else i can", "thank you for sharing", "thanks for sharing",
    "great question", "i'd be happy", "i would be happy",
)  # fmt: skip
"""The tone of a help desk, which is that of no role here but the counter's."""

LISTENING = frozenset(
    ("mm", "mhm", "hm", "hmm", "uh", "huh", "um", "ah", "oh", "okay", "ok", "right", "yes", "yeah", "yep", "sure")
)
"""Sounds of listening: somebody who says nothing else has said nothing."""

LIGHT = frozenset(
    (
        "told", "tell", "telling", "go", "going", "gone", "went", "get", "got", "getting", "know", "think", "thing", "things",
        "like", "good", "great", "really", "today", "time", "back", "make", "made", "take", "took", "taking", "want", "need",
        "say", "said", "saying", "see", "look", "come", "came", "way", "day", "first", "last", "part", "begin", "right",
        "thank", "thanks", "okay", "ok", "yes", "well", "lot", "much", "many", "put", "give", "gave", "let’s", "sure",
        "anything", "something", "everything", "nothing", "still", "around", "even", "one", "two", "little", "bit",
    )
)  # fmt: skip
"""Words that anybody says about anything: to share them is not to take something up."""

URGENT = (
    "chest", "heart", "breath", "breathing", "numb", "numbness", "weak", "weakness", "slurred", "slurring", "droop",
    "drooping", "faint", "fainted", "collapsed", "pressure", "squeezing", "tightness", "bleeding", "seizure",
    "stroke", "overdose",
)  # fmt: skip

ALARM = (
    *URGENT, "doctor", "nurse", "emergency", "hospital", "ambulance", "911", "dose", "doses", "extra", "any more",
    "which", "confirm", "check", "verify", "let me make sure", "is that right", "is that correct", "are you sure",
)  # fmt: skip
"""Words by which somebody takes up what must not be passed over."""

NEXT_STEP = (
    "come with me", "let's get", "let's", "i'll get", "i'm going to", "i need", "i want you", "sit", "stay",
    "don't take", "do not take", "hold off", "tell me", "show me", "we need", "right away", "right now",
)  # fmt: skip

MINIMISING = (
    "probably nothing", "nothing to worry about", "don't worry", "no big deal", "it's fine", "you'll be fine",
)  # fmt: skip

ADVICE = (
    "you should", "you need to", "you have to", "you must", "you could try", "try to", "have you tried",
    "have you considered", "have you thought about", "i suggest", "i recommend", "my advice", "if i were you",
    "it might help to", "why don't you", "make sure you", "i'd advise", "one thing you can do",
)  # fmt: skip

SILVER_LINING = (
    "at least", "on the bright side", "silver lining", "better place", "happens for a reason", "time heals",
    "move on", "stay positive", "look forward", "he would want", "she would want", "they would want", "be strong",
    "be grateful",
)  # fmt: skip

OWN_STORY = (
    "when i lost", "when my", "my own", "happened to me", "i remember when", "i went through", "same thing happened",
    "i know exactly how you feel",
)  # fmt: skip

DIAGNOSIS = (
    "depression", "depressed", "disorder", "symptom of", "stage of grief", "you are experiencing", "clinical",
)  # fmt: skip

PRESENCE = (
    "here with you", "i'm right here", "i'm still here", "i am still here", "with you", "take your time", "no hurry",
    "no rush", "all the time", "whenever you", "i hear", "i'm listening", "go on", "stay with",
)  # fmt: skip

WARM = (
    "here with you", "i'm right here", "i'm still here", "with you", "take your time", "sorry", "thank you for",
    "hear", "gently", "hold", "holding", "heavy", "hard", "love", "loved", "miss", "missing", "hurt", "hurts",
    "carry", "carrying", "tender", "heart", "ache",
)  # fmt: skip

CALM_QUICK = (
    "okay", "ok", "all right", "alright", "let's", "right away", "right now", "i'm going to", "stay with me", "sit",
    "we'll", "got it", "when did", "how long", "quickly",
)  # fmt: skip

LOCATION = (
    "address", "location", "where are you", "where exactly", "number", "call you back", "callback", "street", "road",
    "house", "cross street", "confirm", "repeat", "again",
)  # fmt: skip

PRACTICAL = (
    "okay", "confirm", "stay on the line", "help is", "on the way", "is that", "what is", "where", "are you", "is he",
    "is she", "address", "number", "i have", "sending",
)  # fmt: skip

SPECULATION = (
    "he'll be fine", "she'll be fine", "you'll be fine", "they'll be fine", "everything will be okay", "probably",
    "i'm sure", "i guess", "most likely", "hopefully", "i bet",
)  # fmt: skip

CHAT = (
    "how's your day", "how is your day", "nice weather", "by the way", "fun fact", "interesting", "that reminds me",
    "what brings you", "tell me about yourself", "i love", "my favorite",
)  # fmt: skip

GENTLE = (
    "breath", "breathe", "breathing", "gently", "gentle", "notice", "noticing", "rest", "resting", "soft", "softly",
    "soften", "return", "stillness", "still", "quiet", "let it", "let that", "allow", "settle", "ease", "slowly",
)  # fmt: skip

PRAISE_OR_ANALYSIS = (
    "great job", "good job", "well done", "excellent", "amazing", "awesome", "proud of you", "that means",
    "this means", "because you", "it sounds like you", "the reason", "you're feeling this", "psychologically",
    "tells me that",
)  # fmt: skip

ANSWER_GIVEN = (
    "the answer is", "the correct answer", "the right answer", "the solution is", "the result is", "you should get",
    "should be", "it should have", "is actually", "it's actually", "you forgot", "you dropped", "you made a mistake",
    "the mistake is", "the error is", "you need to", "the next step is", "just multiply", "just divide", "just add",
    "just subtract", "simply", "becomes", "which gives", "gives you", "that gives",
)  # fmt: skip

POINTING = (
    "step", "line", "sign", "term", "side", "check", "look", "equation", "what happens", "how did", "why", "leave",
)  # fmt: skip

CURIOUS = (
    "what", "how", "why", "which", "where", "could you", "can you", "walk me", "show me", "tell me",
)  # fmt: skip

ORDER = (
    "got it", "anything else", "would you like", "which", "so that's", "that's a", "okay", "you got it", "coming up",
    "and for", "pull", "window", "is that right", "is that correct", "does that", "sure thing", "all right",
    "alright", "what size",
)  # fmt: skip

COMMENT = (
    "thank you for", "thanks for", "great point", "good point", "how can i", "i think", "i believe", "in my opinion",
    "as an interpreter", "i understand", "i see", "sounds like", "sorry to hear", "let me know", "would you like",
    "can you", "could you", "the speaker", "he says", "she says", "they say", "you mentioned", "correction",
    "congratulations", "welcome",
)  # fmt: skip
"""What an interpreter would say only in its own right. A phrase that the source has is no comment."""

BLOCK = (
    "that's not", "that is not", "there is no", "there's no", "it isn't", "you can't", "that can't", "impossible",
    "makes no sense", "doesn't make sense", "stop the scene", "out of character", "in reality", "to be realistic",
    "calm down", "i'm confused", "not real", "let's be serious", "let's be careful",
)  # fmt: skip

PLAYFUL = (
    "yes", "oh", "ha", "haha", "wow", "quick", "and", "look", "darling", "captain", "majesty", "my", "behold",
    "hooray", "whoa", "no way", "of course", "absolutely", "finally",
)  # fmt: skip

AGREEING = (
    "yes", "yeah", "yep", "sure", "okay", "ok", "deal", "agreed", "i agree", "fine", "of course", "absolutely",
    "go ahead", "you can", "you may", "all right", "alright", "done", "sounds good", "works for me", "let's do it",
    "let's go with", "i accept", "you have a deal",
)  # fmt: skip

DECLINING = (
    "no", "not", "don't", "can't", "cannot", "won't", "wouldn't", "never", "maybe", "perhaps", "think about it",
    "i'll see", "we'll see", "later", "unless",
)  # fmt: skip

ASKING = (
    "can you", "could you", "can i", "could i", "may i", "would you", "will you", "please", "i need", "i want",
    "i'd like", "give me", "tell me", "let me", "is it okay", "do you mind", "what is", "what's", "what about",
    "how about",
)  # fmt: skip

SMALL_TALK = (
    "hi", "hello", "hey", "good morning", "good afternoon", "good evening", "how are you", "nice to meet you",
    "thanks", "thank you", "fine", "bye", "goodbye",
)  # fmt: skip
